package files

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked is returned for a file that another process has locked.
var ErrLocked = errors.New("locked by another process")

// Lock opens the file at name and locks it until the returned file is closed or the process exits. It creates the file with mode 0600 if it
// does not exist. Lock never waits: if the file is already locked, the error wraps [ErrLocked].
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
