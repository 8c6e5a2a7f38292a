// Package logfile writes logs of lines to files that are put aside when they are full,
// and reads them. A file may keep room on its disk for lines that must be written when
// there is no other.
package logfile
