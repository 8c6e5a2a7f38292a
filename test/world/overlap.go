package world

import "flag"

// Overlap runs up to n parallel tests of this package at once, with any number of cores:
// of tests that mostly wait, one a core leaves the cores idle. TestMain calls it before
// the flags are parsed, so that -parallel overrides it.
func Overlap(n string) {
	if err := flag.Set("test.parallel", n); err != nil {
		panic(err)
	}
}
