package redisstore

import _ "embed"

//go:embed apply.lua
var applySource string

//go:embed adjust.lua
var adjustSource string

//go:embed reset.lua
var resetSource string
