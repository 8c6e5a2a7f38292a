// Package files reads the files named in a configuration. Every package that reads such a file uses this package, so that no file can block
// the gateway or exhaust its memory. The package reads only regular files, never named pipes or devices. It limits the size of files, and
// abandons a read that takes longer than [Timeout].
//
// A [Path] is a setting that names a file. The file cannot be opened until [Path.AllowAll] or [Path.Confine] has set the base directory of
// the Path. A confined Path never leads out of its root directory, neither with ".." nor through a symbolic link.
package files
