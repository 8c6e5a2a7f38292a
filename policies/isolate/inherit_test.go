//go:build unix

package isolate_test

import (
	"os"
	"syscall"
	"testing"
)

// inherit makes a file one that children of this process get, as a process has it that was
// started with the file open.
func inherit(t *testing.T, file *os.File) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
}
