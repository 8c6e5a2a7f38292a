// Package isolate runs work on untrusted Rego in child processes. A [Runner] starts the
// children, bounds their time and memory, and remembers which Rego has compiled. [Serve] is
// the child's side.
//
// OPA's parser and compiler cannot be interrupted, and some small modules keep the type
// checker busy for ever. The parent process therefore compiles such Rego only after a child
// has compiled the same bytes.
//
// A child is the same executable with [Flag] as its only argument. It has an empty
// environment, no descriptors but its standard streams, and / as its directory. It reads one
// request from standard input, and the input of the job after it; it writes one line when it
// has read the request, and then its answer. The package knows neither OPA nor policies: what
// a job does is a [Handler].
package isolate
