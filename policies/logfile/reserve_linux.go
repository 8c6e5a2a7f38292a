package logfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives a file room for n bytes behind an offset, without changing its size.
func allocate(f *os.File, offset, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, n)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fallocate", err)
		}
	}
}

// noRoom reports whether an error of allocate means that there is none: not on the disk,
// by a quota, or by a bound of the process.
func noRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
