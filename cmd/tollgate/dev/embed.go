package dev

import (
	"embed"
	_ "embed" // for the programs
)

// readParts are one program, in this order. It and wireProgram are run by python3 -I.
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

// page is the explorer beside the viewer that the gateway has.
//
//go:embed assets
var page embed.FS
