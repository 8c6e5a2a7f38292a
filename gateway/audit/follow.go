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
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Line is a line of the log as it stands in the file. Of one that a crash left
// incomplete, only Seq and Text are known.
type Line struct {
	Seq   int64
	Time  time.Time
	Phase Phase
	Record
	// Text has no end of line.
	Text []byte
}

// Digest returns the SHA-256 of the line, in hexadecimal digits.
func (l *Line) Digest() string { return sum(l.Text) }

// position is the last line that was read: its number and its sum. The zero position
// is before the first.
type position struct {
	Seq int64  `json:"seq"`
	Sum string `json:"sum"`
}

// follower reads the lines of a log while it is written and its files are put aside. It
// is not safe for concurrent use.
type follower struct {
	cfg logfile.File
	at  position
	// lost counts lines whose file was gone before they were read.
	lost int64

	file   *os.File // nil before the first
	offset int64    // of what was read of it
	gap    bool     // the next file seemed to be gone
}

// maxRead is how much is read at once, in bytes.
const maxRead = 4 * maxLine

// next returns lines that have not been read, none at the end of the log.
func (f *follower) next() ([]Line, error) {
	for {
		if f.file == nil {
			if found, err := f.advance(); !found || err != nil {
				return nil, err
			}
		}
		rotated, err := f.rotated() // before the read: what was written until then is read
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

// rotated reports whether the file that is read was put aside, or cut.
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
		return false, nil // the next line begins a new one
	}
	return err == nil && !os.SameFile(open, there), err
}

// read returns the lines behind the offset. An end of a file that is complete is a line,
// too.
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
	out.Seq = cmp.Or(out.Seq, f.at.Seq+1) // it has a number, which cannot be read
	f.at = position{out.Seq, sum(text)}
	return out
}

func parse(text []byte) Line {
	l, err := lineOf(text)
	if err != nil {
		return Line{Text: text}
	}
	return Line{l.Seq, l.Time, l.Phase, l.Record, text}
}

// errLine is a line that a crash left incomplete.
var errLine = errors.New("no line of an audit log")

func lineOf(text []byte) (l line, err error) {
	if json.Unmarshal(text, &l) != nil || l.Seq < 1 {
		return l, errLine
	}
	return l, nil
}

// files are the names that the log may have, the oldest first.
func (f *follower) files() []string {
	names := make([]string, 0, f.cfg.Kept()+1)
	for n := f.cfg.Kept(); n >= 0; n-- {
		names = append(names, f.cfg.Aside(n))
	}
	return names
}

// advance opens the oldest file with a line behind the last one that was read. That
// lines between are gone counts when it is seen twice: files move while one looks.
func (f *follower) advance() (found bool, err error) {
	for _, name := range f.files() {
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

// openIf opens a file whose first line has a number that is wanted, 0 for one without
// lines. It returns nil for another, and where there is none of that name.
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

// firstOf returns the number of the first line of a file, 0 if there is none.
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

// seek goes behind the line of a position, and reports whether the log has it. If not,
// the follower is before the oldest line there is, or before the next one where files of
// older lines are gone.
func (f *follower) seek(to position) (known bool, err error) {
	if to.Seq == 0 {
		return true, nil
	}
	for _, name := range slices.Backward(f.files()) {
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
		f.at = position{} // it is another log
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
