package logfile

import (
	"cmp"
	"errors"
	"os"

	"github.com/tollgate-dev/tollgate/config/files"
)

// Writer writes a file of lines that is put aside when it is full. When another
// program has done so, it begins a new one. It is not safe for concurrent use.
type Writer struct {
	cfg  File
	f    *os.File
	size int64
	// reserve is how much room is kept behind the end, in bytes; what lies before the
	// offset allocated belongs to the file.
	reserve, allocated int64
}

// Open opens a file to write on where it ends, or creates it.
func Open(cfg File) (*Writer, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 100_000_000)
	cfg.Keep = cfg.Kept()
	r := &Writer{cfg: cfg}
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

// Reserve keeps room for n bytes behind the end of the file, which only WriteReserved
// uses, if the file system can: a disk that is full has it still. Readers do not see it.
func (r *Writer) Reserve(n int64) { r.reserve = n }

// WriteLines writes whole lines. A part of them that was written before a failure is taken
// back, as far as the file lets it. It fails where only the reserve has room for them.
func (r *Writer) WriteLines(text []byte) error {
	err := r.follow()
	if err == nil {
		err = r.keepReserve(len(text))
	}
	if err == nil && r.full(len(text)) {
		err = errors.Join(r.rotate(), r.keepReserve(len(text)))
	}
	if err != nil {
		return err
	}
	return r.append(text)
}

// WriteReserved is WriteLines for lines that may use up the reserve. While there is
// nothing but that, the file is not put aside.
func (r *Writer) WriteReserved(text []byte) error {
	if err := r.follow(); err != nil {
		return err
	}
	if r.keepReserve(len(text)) == nil && r.full(len(text)) {
		if err := r.rotate(); err != nil {
			return err
		}
		_ = r.keepReserve(len(text)) // if it cannot, it may be used up
	}
	return r.append(text)
}

// full reports whether the file has to be put aside before n bytes are written.
func (r *Writer) full(n int) bool { return r.size > 0 && r.size+int64(n) > r.cfg.MaxBytes }

// ahead is how much more room is taken than is needed, in bytes, so that few writes wait
// for it.
const ahead = 16 << 10

// keepReserve makes sure that there is room for n bytes and the reserve.
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
			r.reserve = 0 // the file system has no such thing
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

// Sync waits until all written lines are on the disk.
func (r *Writer) Sync() error { return r.f.Sync() }

// follow opens the file anew if Path no longer names the one that is open.
func (r *Writer) follow() error {
	open, err := r.f.Stat()
	if err != nil {
		return errors.Join(err, r.open()) // it could not be opened before
	}
	if there, err := os.Stat(r.cfg.Path); err == nil && os.SameFile(open, there) {
		if there.Size() < r.size { // it was cut
			r.allocated = 0
		}
		r.size = there.Size()
		return nil
	}
	return errors.Join(r.f.Close(), r.open())
}

// rotate renames Path to Path.1, that to Path.2, and so on; the last goes.
func (r *Writer) rotate() error {
	var err error
	if r.reserve > 0 {
		err = r.f.Truncate(r.size) // its reserve becomes that of the next file
	}
	if err := errors.Join(err, r.f.Close()); err != nil {
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
func (r *Writer) Close() error { return r.f.Close() }
