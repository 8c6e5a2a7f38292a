package dev

import (
	"embed"
	_ "embed" // for the programs
)

// The parts of the program that reads a project, in this order. It and wireProgram are run with python3 -I.
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

// page is the API explorer, shown with the viewer that the gateway uses.
//
//go:embed assets
var page embed.FS
