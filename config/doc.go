// Package config reads the configuration of tollgate from a main YAML file and, optionally, one file per organisation. The files are
// decoded strictly. They refer to secrets but do not contain them. The gateway and the commands call [Load]. The gateway also calls [Watch]
// to load the configuration again after a change. The package has no state: a [Loaded] holds one configuration with the positions of its
// values and the digests of the files from which it was read.
//
// All faults are reported at once, each with its file, line, column and path. The values are decoded into a settings.Config, starting from
// settings.Default. Some faults, such as a policy that does not compile, are found only when package gateway compiles the configuration;
// [Loaded.Locate] adds the positions in the file to these faults.
package config
