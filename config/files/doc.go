// Package files reads the files that a configuration names. Every package that reads such a file uses it, so that no file can stop
// the gateway: only regular files are read, named pipes and devices are never opened, sizes are bounded, and a read that does not end
// is given up after [Timeout].
//
// A [Path] is a setting that names a file. It cannot be opened before [Path.AllowAll] or [Path.Confine] has set its base directory, and
// a confined Path never leads out of its directory, through ".." or a symbolic link.
package files
