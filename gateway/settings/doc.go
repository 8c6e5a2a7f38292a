// Package settings defines a struct for each section of the configuration, with its defaults and the checks that need no engine. Package
// config decodes the file into these structs, and package gateway is built from them.
package settings
