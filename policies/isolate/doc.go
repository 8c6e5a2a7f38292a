// Package isolate runs work on untrusted Rego in child processes. A [Runner] starts the children, limits their time and memory, and
// remembers which Rego has been compiled. [Serve] implements the child.
//
// OPA's parser and compiler cannot be interrupted, and for some small modules the type checker does not terminate. The parent
// therefore compiles such Rego only after a child has compiled it.
//
// A child is the same executable with [Flag] as its only argument. It has an empty environment, no file descriptors except the standard
// streams, and / as its working directory. It reads one request and the job's input from standard input. It writes one line after it has
// read the request, and its answer at the end. The package depends on neither OPA nor policies: a [Handler] implements the jobs.
package isolate
