package rego

import "embed"

// Files contains the Rego files, including tests.
//
//go:embed *.rego support/*.rego
var Files embed.FS
