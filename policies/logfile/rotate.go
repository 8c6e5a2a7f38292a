package logfile

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/config/files"
)

// Writer appends lines to a file and rotates it when it is full. If the rotation fails, Writer continues with the full file, and tries again
// at each write. If another program renames the file, Writer creates a new one. Only RotateError is safe for concurrent use.
type Writer struct {
	cfg    File
	logger *slog.Logger
	f      *os.File
	size   int64
	// failure is the error of the last rotation, or nil if the file is not full.
	failure atomic.Pointer[error]
	// reserve is the space in bytes to keep after the end of the file. The space up to the offset allocated is already reserved.
	reserve, allocated int64
}

// Open opens a file for appending and creates it if necessary. The logger logs when a rotation fails for the first time.
func Open(cfg File, logger *slog.Logger) (*Writer, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 100_000_000)
	cfg.Keep = cfg.Kept()
	r := &Writer{cfg: cfg, logger: logger}
	return r, r.open()
}

func (r *Writer) open() error {
	f, err := files.Append(r.cfg.Path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.f, r.size, r.allocated = f, info.Size(), 0
	return nil
}

// Reserve keeps n bytes of disk space free after the end of the file, if the file system supports this. Only WriteReserved uses the space,
// so that it can write even if the disk is full. The space is not part of the file's content.
func (r *Writer) Reserve(n int64) { r.reserve = n }

// WriteLines appends complete lines. If a write fails, WriteLines tries to remove the part that was written. It returns an error if the
// file system has no free space beyond the reserve.
func (r *Writer) WriteLines(text []byte) error {
	err := r.follow()
	if err == nil {
		err = r.keepReserve(len(text))
	}
	if err == nil {
		r.rotateFull(len(text))
		err = r.keepReserve(len(text))
	}
	if err != nil {
		return err
	}
	return r.append(text)
}

// WriteReserved is like WriteLines but may use the reserved space. While only the reserved space is left, the file is not rotated.
func (r *Writer) WriteReserved(text []byte) error {
	if err := r.follow(); err != nil {
		return err
	}
	if r.keepReserve(len(text)) == nil {
		r.rotateFull(len(text))
		_ = r.keepReserve(len(text)) // on failure, use up the reserve
	}
	return r.append(text)
}

// RotateError returns the reason why the file has grown beyond its maximum size, or nil. It is safe for concurrent use.
func (r *Writer) RotateError() error {
	if failure := r.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// rotateFull rotates the file if n more bytes exceed the maximum size. It logs the first failure in a row.
func (r *Writer) rotateFull(n int) {
	var next *error
	if r.size > 0 && r.size+int64(n) > r.cfg.MaxBytes {
		if err := r.rotate(); err != nil {
			next = &err
		}
	}
	switch was := r.failure.Swap(next); {
	case was == nil && next != nil:
		r.logger.Error("cannot rotate the log file, so it grows beyond max_bytes", "file", r.cfg.Path, "error", (*next).Error())
	case was != nil && next == nil:
		r.logger.Info("log file is within max_bytes again", "file", r.cfg.Path)
	}
}

// ahead is the additional space to reserve in bytes, so that few writes have to reserve space.
const ahead = 16 << 10

// keepReserve ensures that there is space for n bytes and the reserve.
func (r *Writer) keepReserve(n int) error {
	want := int64(n) + r.reserve
	if r.reserve == 0 || r.size+want <= r.allocated {
		return nil
	}
	for _, more := range []int64{ahead, 0} {
		err := allocate(r.f, r.size, want+more)
		switch {
		case err == nil:
			r.allocated = r.size + want + more
			return nil
		case !noRoom(err):
			r.reserve = 0 // not supported by the file system
			return nil
		case more == 0:
			return err
		}
	}
	return nil
}

func (r *Writer) append(text []byte) error {
	n, err := r.f.Write(text)
	if err != nil && n > 0 {
		err = errors.Join(err, r.f.Truncate(r.size))
		n, r.allocated = 0, 0
	}
	r.size += int64(n)
	return err
}

// Sync waits until all written lines are on disk.
func (r *Writer) Sync() error { return r.f.Sync() }

// follow reopens the file if Path no longer names the open file.
func (r *Writer) follow() error {
	open, err := r.f.Stat()
	if err != nil {
		return errors.Join(err, r.open()) // the last attempt to open it failed
	}
	if there, err := os.Stat(r.cfg.Path); err == nil && os.SameFile(open, there) {
		if there.Size() < r.size { // truncated by another program
			r.allocated = 0
		}
		r.size = there.Size()
		return nil
	}
	return errors.Join(r.f.Close(), r.open())
}

// rotate renames Path to Path.1, Path.1 to Path.2, and so on, and deletes the last file. If it fails, the open file stays in use.
func (r *Writer) rotate() error {
	last := 1 // the first unused name, so that attempts that fail at a later rename do not push out older files
	for ; last < r.cfg.Keep; last++ {
		if _, err := os.Lstat(r.cfg.RotatedName(last)); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	for i := last; i > 0; i-- {
		err := os.Rename(r.cfg.RotatedName(i-1), r.cfg.RotatedName(i))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	full, size := r.f, r.size
	if err := r.open(); err != nil {
		return errors.Join(err, os.Rename(r.cfg.RotatedName(1), r.cfg.Path))
	}
	var err error
	if r.reserve > 0 {
		err = full.Truncate(size) // releases the reserve
	}
	return errors.Join(err, full.Close())
}

// Close closes the file.
func (r *Writer) Close() error { return r.f.Close() }
