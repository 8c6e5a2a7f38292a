package main

import _ "embed"

//go:embed demo.yaml
var demoYAML string
