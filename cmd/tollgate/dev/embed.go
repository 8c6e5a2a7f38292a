package dev

import (
	"embed"
	_ "embed" // for the programs
)

// sourcePart, optionsPart and readPart are, in this order, the program that reads a project. This program and wireProgram are run with
// python3 -I.
var (
	//go:embed python/source.py
	sourcePart string
	//go:embed python/options.py
	optionsPart string
	//go:embed python/read.py
	readPart string
	//go:embed python/wire.py
	wireProgram string
)

// readProgram returns the program that reads a project.
func readProgram() string { return sourcePart + optionsPart + readPart }

// page holds the files of the API explorer. The explorer uses the same viewer as the gateway.
//
//go:embed assets
var page embed.FS
