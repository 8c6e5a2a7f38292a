package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
)

// File is where a log is written, and how much of it is kept.
type File struct {
	Path     string `yaml:"path" doc:"where it is; its directory must exist"`
	MaxBytes int64  `yaml:"max_bytes" doc:"size at which it is rotated; 0 is 100 MB" unit:"bytes"`
	Keep     int    `yaml:"keep" doc:"how many rotated files are kept, as path.1, path.2 and so on; 0 is 5" unit:"files"`
}

// Validate reports every fault, each with its path below the section.
func (f File) Validate() error {
	var errs fault.Found
	errs.If(f.Path == "", "path", "is required")
	errs.If(f.MaxBytes < 0, "max_bytes", "must not be negative, got %d", f.MaxBytes)
	errs.If(f.Keep < 0, "keep", "must not be negative, got %d", f.Keep)
	return errors.Join(errs...)
}

// Kept is how many files are kept that were put aside.
func (f File) Kept() int { return cmp.Or(f.Keep, 5) }

// Aside is the name of the file after it was put aside n times.
func (f File) Aside(n int) string {
	if n == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s.%d", f.Path, n)
}

// Open opens the file and those put aside to read, oldest first. The newest is opened first: a
// file that is put aside meanwhile is met again, and known.
func (f File) Open() (list []*os.File, err error) {
	var known []os.FileInfo
	for n := range f.Kept() + 1 {
		file, err := files.Open(f.Aside(n))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return list, err
		}
		info, err := file.Stat()
		for _, other := range known {
			if err == nil && os.SameFile(info, other) {
				err = os.ErrExist
			}
		}
		if err != nil {
			_ = file.Close()
			if errors.Is(err, os.ErrExist) {
				continue
			}
			return list, err
		}
		known, list = append(known, info), append([]*os.File{file}, list...)
	}
	return list, nil
}
