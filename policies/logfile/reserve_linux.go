package logfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate reserves disk space for n bytes after an offset without changing the size of the file.
func allocate(f *os.File, offset, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, n)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fallocate", err)
		}
	}
}

// noRoom reports whether an error of allocate means that the space is not available: on the disk, in a quota, or within a process
// limit.
func noRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
