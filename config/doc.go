// Package config reads tollgate's configuration: one YAML file, strict,
// with secrets referred to and never written down.
//
// Every fault is reported at once, each with file, line, column and full path.
// Defaults are in one place, Default. Load ends with a settings.Config; faults that
// only show when the configuration is compiled (a policy that does not
// compile, a route that clashes) are gateway's to find, and Locate gives these
// their place in the file too.
package config
