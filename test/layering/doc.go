// Package layering keeps the shape of the code: which package may import which, and a few house rules that no linter knows. It holds
// the table; the tests read the code with go list and go/parser, and hold the linter's configuration against the same table.
//
// A new package needs a row, so that it is decided where it belongs.
package layering
