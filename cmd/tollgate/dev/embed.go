package dev

import _ "embed" // for the programs

// readProgram is run by python3 -I.
//
//go:embed python/read.py
var readProgram string
