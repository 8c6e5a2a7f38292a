package rego

import "embed"

// Files holds the Rego, tests included.
//
//go:embed *.rego support/*.rego
var Files embed.FS
