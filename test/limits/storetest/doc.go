// Package storetest has what any [ratelimit.Store] is measured by: [Memory], a
// model of the rules short enough to be believed by reading it, and [Test], the
// suite that every store passes, the model included.
package storetest
