// Package files reads the files named in a configuration. Every package that reads such a file uses this package, so that no file can stop
// the gateway. Only regular files are read, never named pipes or devices. File sizes are limited, and a read that takes longer than
// [Timeout] is abandoned.
//
// A [Path] is a setting that names a file. It cannot be opened until [Path.AllowAll] or [Path.Confine] has set its base directory. A
// confined Path never leads out of its directory, neither with ".." nor through a symbolic link.
package files
