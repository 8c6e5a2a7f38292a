// Package layering keeps the shape of the code: which package may import which, how large its parts may be, and a few house rules that
// no linter knows. It holds the tables; the tests read the code with go list and go/parser, and hold the linter's configuration against
// the table of imports.
//
// A new package needs a row in both, so that it is decided where it belongs.
package layering
