// Package config reads the configuration of tollgate from one YAML file and the files of organisations that it names. The files are decoded
// strictly, and they refer to secrets without containing them. The gateway and the commands call [Load], the gateway also [Watch], to load
// the configuration again after a change. The package has no state: a [Loaded] is one configuration with the positions of its values and
// the digests of the files it was read from.
//
// All faults are reported at once, each with its file, line, column and path. Defaults are in settings.Default. [Load] returns a
// settings.Config. Faults that show only when package gateway compiles the configuration, such as a policy that does not compile or
// conflicting routes, get their place in the file from [Loaded.Locate].
package config
