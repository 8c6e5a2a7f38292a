package files

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked is returned by [Lock] if another process has locked the file.
var ErrLocked = errors.New("locked by another process")

// Lock opens the named file and locks it until the returned file is closed or the process exits. If the file does not exist, Lock creates
// it with mode 0600. Lock never waits: if the file is already locked, Lock returns an error that wraps [ErrLocked].
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
