package files

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked is the error of a file that another open file has locked.
var ErrLocked = errors.New("locked by another process")

// Lock opens the file at name, or creates it for its owner alone, and locks it until the returned file is closed or the process ends. It
// never waits: the error of a file that is locked wraps [ErrLocked].
func Lock(name string) (*os.File, error) {
	f, err := Append(name)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return f, nil
}
