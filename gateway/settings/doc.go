// Package settings has a struct for each section of the configuration, with its defaults
// and the checks that need no engine. Package config reads the file into it, and package
// gateway is made from it.
package settings
