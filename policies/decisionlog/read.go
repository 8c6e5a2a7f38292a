package decisionlog

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxLine bounds one event of a file, in bytes.
const maxLine = 32 << 20

// Copy writes the events of an organisation that a log file and those put aside hold, and
// that are no older than since, oldest first, as they are: one JSON object per line. What
// is no event is left out. The file may be written and put aside meanwhile.
func (f File) Copy(ctx context.Context, w io.Writer, org string, since time.Time) error {
	files, err := f.all()
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	if err != nil {
		return err
	}
	for _, file := range files {
		lines := bufio.NewScanner(file)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		for lines.Scan() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !wanted(lines.Bytes(), org, since) {
				continue
			}
			if _, err := w.Write(append(lines.Bytes(), '\n')); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return nil
}

// all opens the file and those put aside, oldest first. The newest is opened first: what
// is put aside meanwhile is met again, and known.
func (f File) all() (files []*os.File, err error) {
	var known []os.FileInfo
	for n := range f.Kept() + 1 {
		file, err := os.Open(f.Aside(n))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
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
			return files, err
		}
		known, files = append(known, info), append([]*os.File{file}, files...)
	}
	return files, nil
}

// wanted reports whether a line is an event of an organisation and no older than since.
func wanted(line []byte, org string, since time.Time) bool {
	var e struct {
		Timestamp time.Time         `json:"timestamp"`
		Custom    map[string]string `json:"custom"`
	}
	return json.Unmarshal(line, &e) == nil && e.Custom["org"] == org && !e.Timestamp.Before(since)
}
