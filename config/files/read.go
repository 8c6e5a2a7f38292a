package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// Timeout is the time limit for opening and reading one file.
	Timeout = 5 * time.Second
	// maxPending is the maximum number of concurrent reads. Abandoned reads count until they return, because the operating system cannot
	// interrupt a read from a network file system whose server does not respond.
	maxPending = 64
)

// File size limits, in bytes.
const (
	// MaxSecret is the size limit of a file with a secret, a certificate or a certificate revocation list.
	MaxSecret = 16 << 20
	// MaxToken is the size limit of a file with a token or a public key.
	MaxToken = 64 << 10
)

var (
	// ErrIrregular is returned if a name refers to a directory, named pipe, socket or device.
	ErrIrregular = errors.New("not a regular file")
	// ErrTooLarge is returned if a file is larger than the caller permits.
	ErrTooLarge = errors.New("file too large")
	// ErrTooSlow is returned if a file could not be opened and read within [Timeout].
	ErrTooSlow = fmt.Errorf("no response from the file system within %s", Timeout)
)

// Read returns the content of the named regular file. It follows symbolic links. If the file has more than limit bytes, Read returns an
// error. Errors have the type [*fs.PathError]; they may wrap [ErrIrregular], [ErrTooLarge] or [ErrTooSlow].
func Read(name string, limit int64) ([]byte, error) {
	return WithTimeout("read", name, func() ([]byte, error) { return read(nil, name, limit) })
}

// Open opens the named regular file for reading, for example a log that is read in parts. It follows symbolic links, and never blocks on a
// named pipe.
func Open(name string) (*os.File, error) { return open(nil, name) }

// Append opens the named file for appending. If the file does not exist, Append creates it with mode 0600. Append never blocks on a named
// pipe: it returns an error if the pipe has no reader.
func Append(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
}

// Stat is like [os.Stat], but returns [ErrTooSlow] after [Timeout].
func Stat(name string) (fs.FileInfo, error) {
	return WithTimeout("stat", name, func() (fs.FileInfo, error) { return os.Stat(name) })
}

// open opens a regular file in the tree in, or anywhere if in is nil. It checks the file type before opening, because opening a device can
// have side effects. It checks the type again after opening, because the name may refer to another file by then.
func open(in *os.Root, name string) (*os.File, error) {
	stat, openFile := os.Stat, os.OpenFile
	if in != nil {
		stat, openFile = in.Stat, in.OpenFile
	}
	if info, err := stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, irregular(name, err)
	}
	f, err := openFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(irregular(name, err), f.Close())
	}
	return f, nil
}

func irregular(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "open", Path: name, Err: e.Err}
	}
	if err != nil {
		return err
	}
	return &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
}

func read(in *os.Root, name string, limit int64) ([]byte, error) {
	f, err := open(in, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLarge := func() error {
		return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: limit is %d bytes", ErrTooLarge, limit)}
	}
	if info.Size() > limit {
		return nil, tooLarge()
	}
	data := make([]byte, 0, info.Size()+1)
	for { // files in /proc report size 0, and a file may grow while it is read
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, tooLarge()
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// pending holds one element for each file system call in progress.
var pending = make(chan struct{}, maxPending)

// WithTimeout calls do, a function that accesses the named file, and returns its result. If do takes longer than [Timeout], WithTimeout
// returns [ErrTooSlow]; do then continues in the background, and its result is discarded. op is the operation named in the error.
func WithTimeout[T any](op, name string, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var zero T
	slow := func() error { return &fs.PathError{Op: op, Path: name, Err: ErrTooSlow} }
	timer := time.NewTimer(Timeout)
	defer timer.Stop()
	select {
	case pending <- struct{}{}:
	case <-timer.C:
		return zero, slow()
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-pending }()
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		return zero, slow()
	}
}

// Cause returns err without the path that it contains.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
