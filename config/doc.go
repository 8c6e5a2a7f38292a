// Package config reads the configuration of tollgate from one YAML file. The file is decoded strictly, and it refers to secrets without
// containing them.
//
// All faults are reported at once, each with its file, line, column and path. Defaults are in settings.Default. [Load] returns a
// settings.Config. Faults that show only when package gateway compiles the configuration, such as a policy that does not compile or
// conflicting routes, get their place in the file from [Loaded.Locate].
package config
