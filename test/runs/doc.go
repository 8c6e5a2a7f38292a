// Package runs holds the tests of the run interface through the assembled gateway:
// jobs, streams and chat, against the emulator and against a platform that
// misbehaves.
package runs
