package dev

import (
	"embed"
	_ "embed" // for the programs
)

// readProgram and wireProgram are run by python3 -I.
//
//go:embed python/read.py
var readProgram string

//go:embed python/wire.py
var wireProgram string

// page is the explorer beside the viewer that the gateway has.
//
//go:embed assets
var page embed.FS
