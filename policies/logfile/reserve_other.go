//go:build !linux

package logfile

import (
	"errors"
	"os"
)

// allocate is only implemented on Linux.
func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }

func noRoom(error) bool { return false }
