// Package logfile writes line-oriented logs to files that are rotated when they are full, and reads them. A file can reserve disk
// space for lines that must be written even if the disk is full.
package logfile
