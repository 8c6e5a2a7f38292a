package decisionlog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
)

// RotatingFile is a file of lines that is put aside when it is full. When another
// program has done so, it begins a new one. It is not safe for concurrent use.
type RotatingFile struct {
	cfg  File
	f    *os.File
	size int64
}

// OpenFile opens a file to write on where it ends, or creates it.
func OpenFile(cfg File) (*RotatingFile, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 100_000_000)
	cfg.Keep = cfg.Kept()
	r := &RotatingFile{cfg: cfg}
	return r, r.open()
}

func (r *RotatingFile) open() error {
	f, err := os.OpenFile(r.cfg.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.f, r.size = f, info.Size()
	return nil
}

// WriteLines writes whole lines. What was written of them when it fails is taken
// back, as far as the file lets it.
func (r *RotatingFile) WriteLines(text []byte) error {
	if err := r.follow(); err != nil {
		return err
	}
	if r.size > 0 && r.size+int64(len(text)) > r.cfg.MaxBytes {
		if err := r.rotate(); err != nil {
			return err
		}
	}
	n, err := r.f.Write(text)
	if err != nil && n > 0 {
		err = errors.Join(err, r.f.Truncate(r.size))
		n = 0
	}
	r.size += int64(n)
	return err
}

// Sync waits until what was written is on the disk.
func (r *RotatingFile) Sync() error { return r.f.Sync() }

// follow opens the file anew if Path no longer names the one that is open.
func (r *RotatingFile) follow() error {
	open, err := r.f.Stat()
	if err != nil {
		return errors.Join(err, r.open()) // it could not be opened before
	}
	if there, err := os.Stat(r.cfg.Path); err == nil && os.SameFile(open, there) {
		r.size = there.Size() // it may have been cut
		return nil
	}
	return errors.Join(r.f.Close(), r.open())
}

// rotate renames Path to Path.1, that to Path.2, and so on; the last goes.
func (r *RotatingFile) rotate() error {
	if err := r.f.Close(); err != nil {
		return err
	}
	for i := r.cfg.Keep; i > 0; i-- {
		err := os.Rename(r.cfg.Aside(i-1), r.cfg.Aside(i))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return errors.Join(err, r.open())
		}
	}
	return r.open()
}

// Close closes the file.
func (r *RotatingFile) Close() error { return r.f.Close() }

// Kept is how many files are kept that were put aside.
func (f File) Kept() int { return cmp.Or(f.Keep, 5) }

// Aside is the name of the file after it was put aside n times.
func (f File) Aside(n int) string {
	if n == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s.%d", f.Path, n)
}
