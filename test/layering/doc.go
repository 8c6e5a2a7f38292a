// Package layering keeps the shape of the code: which package may import which, how large its parts may be, and a few house rules that
// no linter knows. The package holds the tables; its tests read the code with go list and go/parser.
//
// A new package needs a row in the table of imports and in the table of sizes.
package layering
