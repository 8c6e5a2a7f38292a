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
	// Timeout is how long one file may take to be opened and read.
	Timeout = 5 * time.Second
	// maxPending bounds the reads under way, those that were given up included: the system cannot interrupt a read of a network file
	// system whose server is gone.
	maxPending = 64
)

// Bounds of file sizes, in bytes.
const (
	// MaxSecret is the size of the largest file with a secret, a certificate or a list of revoked certificates.
	MaxSecret = 16 << 20
	// MaxToken is the size of the largest file with a token or a public key.
	MaxToken = 64 << 10
)

var (
	// ErrIrregular is the error of a path that leads to a directory, a named pipe, a socket or a device.
	ErrIrregular = errors.New("not a regular file")
	// ErrTooLarge is the error of a file that is larger than its reader allows.
	ErrTooLarge = errors.New("file too large")
	// ErrTooSlow is the error of a file that could not be opened and read within [Timeout].
	ErrTooSlow = fmt.Errorf("no answer from the file system within %s", Timeout)
)

// Read returns the content of the regular file at name, of at most max bytes. It follows symbolic links. Errors are [*fs.PathError],
// and wrap [ErrIrregular], [ErrTooLarge] or [ErrTooSlow] where these apply.
func Read(name string, limit int64) ([]byte, error) {
	return WithTimeout("read", name, func() ([]byte, error) { return read(nil, name, limit) })
}

// Open opens the regular file at name for reading, such as a log that is read in parts. It follows symbolic links, and never waits
// for the other end of a named pipe.
func Open(name string) (*os.File, error) { return open(nil, name) }

// Append opens the file at name for writing at its end, or creates it for its owner alone. It never waits for the other end of a named
// pipe: one without a reader is an error.
func Append(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
}

// Stat is [os.Stat] with the deadline of [Read].
func Stat(name string) (fs.FileInfo, error) {
	return WithTimeout("stat", name, func() (fs.FileInfo, error) { return os.Stat(name) })
}

// open opens a file of a directory that confines names, or of the whole file system if in is nil. It looks before it opens, since opening a
// device can have effects, and again afterwards, since the name may lead elsewhere by then.
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
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLarge := func() error {
		return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: at most %d bytes are read", ErrTooLarge, limit)}
	}
	if info.Size() > limit {
		return nil, tooLarge()
	}
	data := make([]byte, 0, info.Size()+1)
	for { // files below /proc have no size, and a file may grow meanwhile
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

// pending has an entry for each call of the file system under way.
var pending = make(chan struct{}, maxPending)

// WithTimeout returns the result of do, which asks the file system about name, or [ErrTooSlow] after [Timeout]. do then ends by itself, and
// its result is dropped. op is the operation that the error names.
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
