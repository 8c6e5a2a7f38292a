package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Line is a line of the log as stored in the file. For a line that a crash left incomplete, only Seq and Text are set.
type Line struct {
	line
	// Text does not include the newline.
	Text []byte
}

// Digest returns the SHA-256 of the line in hexadecimal.
func (l *Line) Digest() string { return sum(l.Text) }

// position is the number and digest of the last line read. The zero position is before the first line.
type position struct {
	Seq int64  `json:"seq"`
	Sum string `json:"sum"`
}

// follower reads the lines of a log while it is written and rotated. It is not safe for concurrent use.
type follower struct {
	cfg logfile.File
	at  position
	// lost counts lines whose file was removed before they were read.
	lost int64

	file   *os.File // nil before the first
	offset int64    // end of the part read
	gap    bool     // the next file seemed to be missing
}

// maxRead limits one read, in bytes.
const maxRead = 4 * maxLine

// next returns unread lines, or none at the end of the log.
func (f *follower) next() ([]Line, error) {
	for {
		if f.file == nil {
			if found, err := f.advance(); !found || err != nil {
				return nil, err
			}
		}
		rotated, err := f.rotated() // check first: everything written until then is read below
		if err != nil {
			return nil, err
		}
		lines, err := f.read(rotated)
		if err != nil || len(lines) > 0 || !rotated {
			return lines, err
		}
		if err := f.close(); err != nil {
			return nil, err
		}
	}
}

// rotated reports whether the current file was rotated or truncated.
func (f *follower) rotated() (bool, error) {
	open, err := f.file.Stat()
	if err != nil {
		return false, err
	}
	if open.Size() < f.offset {
		f.offset = 0
	}
	there, err := os.Stat(f.cfg.Path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // the next line starts a new file
	}
	return err == nil && !os.SameFile(open, there), err
}

// read returns the lines after the offset. If complete is set, text after the last newline is a line, too.
func (f *follower) read(complete bool) ([]Line, error) {
	text := make([]byte, maxRead)
	n, err := f.file.ReadAt(text, f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	text = text[:n]
	var lines []Line
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole && (!complete || len(line) == 0 || n == maxRead) {
			return lines, nil
		}
		f.offset += int64(len(text) - len(rest))
		text = rest
		lines = append(lines, f.take(line))
	}
}

func (f *follower) take(text []byte) Line {
	out := parse(text)
	out.Seq = cmp.Or(out.Seq, f.at.Seq+1) // an unreadable line still counts
	f.at = position{out.Seq, sum(text)}
	return out
}

// parse decodes a line. Its Seq is 0 if a crash left the line incomplete.
func parse(text []byte) Line {
	var l line
	if json.Unmarshal(text, &l) != nil || l.Seq < 1 {
		return Line{Text: text}
	}
	return Line{l, text}
}

// names returns the names that the files of a log may have, oldest first.
func names(f *logfile.File) []string {
	list := make([]string, 0, f.Kept()+1)
	for n := f.Kept(); n >= 0; n-- {
		list = append(list, f.RotatedName(n))
	}
	return list
}

// advance opens the oldest file with a line after the last one read. A gap only counts as lost lines if it is seen twice, because
// files may be renamed during the search.
func (f *follower) advance() (found bool, err error) {
	for _, name := range names(&f.cfg) {
		file, first, err := openIf(name, func(first int64) bool { return first > f.at.Seq })
		if err != nil {
			return false, err
		}
		if file == nil {
			continue
		}
		if missing := first - f.at.Seq - 1; missing > 0 && f.at.Seq > 0 {
			if !f.gap {
				f.gap = true
				return false, file.Close()
			}
			f.lost += missing
		}
		f.file, f.offset, f.gap = file, 0, false
		return true, nil
	}
	return false, nil
}

// openIf opens a file if wanted accepts the number of its first line, which is 0 for an empty file. Otherwise, or if the file does
// not exist, it returns nil.
func openIf(name string, wanted func(first int64) bool) (file *os.File, first int64, err error) {
	file, err = files.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if first = firstOf(file); wanted(first) {
		return file, first, nil
	}
	return nil, 0, file.Close()
}

// firstOf returns the number of the first line in a file, or 0.
func firstOf(file *os.File) int64 {
	text := make([]byte, 2*maxLine)
	n, err := file.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	for i, text := range slices.Collect(bytes.SplitSeq(text[:n], []byte("\n"))) {
		if l := parse(text); l.Seq > 0 {
			return l.Seq - int64(i)
		}
	}
	return 0
}

// seek moves to the line after a position and reports whether the log contains the position. If not, the follower is before the
// oldest line, or before the next line if older files have been removed.
func (f *follower) seek(to position) (known bool, err error) {
	if to.Seq == 0 {
		return true, nil
	}
	for _, name := range slices.Backward(names(&f.cfg)) {
		file, first, err := openIf(name, func(first int64) bool { return first > 0 && first <= to.Seq })
		if err != nil {
			return false, err
		}
		if file == nil {
			continue
		}
		f.file, f.at.Seq = file, first-1
		for r := bufio.NewReader(file); f.at.Seq < to.Seq; {
			text, err := r.ReadBytes('\n')
			if err != nil {
				break
			}
			f.offset += int64(len(text))
			f.take(text[:len(text)-1])
		}
		if f.at == to {
			return true, nil
		}
		f.at = position{} // a different log
		return false, f.close()
	}
	f.at = to
	return false, nil
}

func (f *follower) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file, f.offset = nil, 0
	return err
}
