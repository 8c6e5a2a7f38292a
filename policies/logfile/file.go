package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
)

// File configures a log file and its rotation.
type File struct {
	Path     string `yaml:"path" doc:"path of the file in an existing directory"`
	MaxBytes int64  `yaml:"max_bytes" doc:"size at which the file is rotated; default 100 MB" unit:"bytes"`
	Keep     int    `yaml:"keep" doc:"rotated files to keep as path.1, path.2 and so on; default 5" unit:"files"`
}

// Validate checks f and joins the errors it finds, each with its path.
func (f File) Validate() error {
	var errs fault.Found
	errs.If(f.Path == "", "path", "is required")
	errs.If(f.MaxBytes < 0, "max_bytes", "must not be negative, got %d", f.MaxBytes)
	errs.If(f.Keep < 0, "keep", "must not be negative, got %d", f.Keep)
	return errors.Join(errs...)
}

// Kept returns the number of rotated files to keep.
func (f File) Kept() int { return cmp.Or(f.Keep, 5) }

// RotatedName returns the name of the file after n rotations.
func (f File) RotatedName(n int) string {
	if n == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s.%d", f.Path, n)
}

// Open opens the file and its rotated predecessors for reading, and returns them oldest first. It opens the newest file first, so that a
// file that is rotated in the meantime is recognised when it is found again.
func (f File) Open() (list []*os.File, err error) {
	var known []os.FileInfo
	for n := range f.Kept() + 1 {
		file, err := files.Open(f.RotatedName(n))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return list, err
		}
		info, err := file.Stat()
		if err != nil || slices.ContainsFunc(known, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			_ = file.Close()
			if err != nil {
				return list, err
			}
			continue
		}
		known, list = append(known, info), append([]*os.File{file}, list...)
	}
	return list, nil
}
