package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/url"
	"os"
	"slices"
	"sort"
	"time"
)

// Change is an intent with its result, or that a configuration came into force.
type Change struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Record
	// Ended is when the result was written, absent for a change that is under way, and for one whose gateway was killed.
	Ended time.Time `json:"ended,omitzero"`
}

// SubjectOrg returns the organisation that the change is about, "" for one of the whole gateway: the caller's, or the one that an admin asked
// for.
func (c *Change) SubjectOrg() string {
	if c.Org != "" {
		return c.Org
	}
	q, _ := url.ParseQuery(c.Query) // what can be read of it
	return q.Get("org")
}

// Query selects changes. A zero member selects all, but of Limit.
type Query struct {
	// Org is that of About.
	Org string
	// By is the id of a key, the subject of its token, or the name of an admin.
	By        string
	Operation string
	// Resource is an id or a name.
	Resource string
	// Since selects changes that began no earlier.
	Since time.Time
	// Before selects changes with a lower number.
	Before int64
	// Reads selects looks at the records of callers in the place of changes.
	Reads bool
	// Limit bounds how many there are, the newest.
	Limit int
}

func (q *Query) selects(c *Change) bool {
	return (q.Org == "" || q.Org == c.SubjectOrg()) && (q.By == "" || q.By == c.Key || q.By == c.Subject || q.By == c.Who) &&
		(q.Operation == "" || q.Operation == c.Operation) && (q.Resource == "" || q.Resource == c.Resource || q.Resource == c.Name)
}

// Page is a part of the selected changes, newest first.
type Page struct {
	Changes []Change `json:"changes"`
	// Next is the Before of the page behind, 0 at the end of the log.
	Next int64 `json:"next,omitempty"`
	// Incomplete is why the page has fewer changes than it may, although there may be more: enough was read.
	Incomplete string `json:"incomplete,omitempty"`
}

const (
	// maxScan bounds the reading for a page, in bytes.
	maxScan = 8 << 20
	// lookahead is how far behind a page results of its changes are looked for, in lines.
	lookahead = 500
)

// ErrNotRegular is the error of a log that is written to a pipe or a terminal.
var ErrNotRegular = errors.New("the audit log is no regular file")

// List reads the log backwards, from its end or from a number on, through the files put aside. However long the log is, it reads maxScan
// bytes of it, and before these lookahead lines. Lines that a crash left incomplete are left out.
func (l *Log) List(ctx context.Context, q Query) (Page, error) {
	if info, err := os.Stat(l.config.Path); err == nil && !info.Mode().IsRegular() {
		return Page{}, ErrNotRegular // to read would take the lines from whom they are for
	}
	files, err := l.config.Open()
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return Page{}, err
	}
	s := search{Query: q, page: Page{Changes: []Change{}}, lowest: math.MaxInt64, results: make(map[int64]line)}
	end := int64(math.MaxInt64)
	if q.Before > 0 {
		last := q.Before + lookahead
		behind := sort.Search(len(files), func(i int) bool { return firstOf(files[i]) > last })
		files = files[:behind]
		if behind > 0 {
			end = behindLine(files[behind-1], last)
		}
	}
	for _, f := range slices.Backward(files) {
		if done, err := s.scan(ctx, f, end); done || err != nil {
			return s.page, err
		}
		end = math.MaxInt64
	}
	return s.page, nil
}

// block is the distance at which numbers are looked for in a file, in bytes.
const block = maxLine

// behindLine returns an offset behind the line of a number, near it.
func behindLine(f *os.File, seq int64) int64 {
	info, err := f.Stat()
	if err != nil {
		return math.MaxInt64
	}
	text := make([]byte, 2*maxLine)
	return block * int64(sort.Search(int(info.Size()/block)+1, func(i int) bool {
		n, _ := f.ReadAt(text, int64(i)*block) // without a line there the search goes on behind
		_, rest, _ := bytes.Cut(text[:n], []byte("\n"))
		for text := range bytes.SplitSeq(rest, []byte("\n")) {
			if known, err := lineOf(text); err == nil {
				return known.Seq > seq
			}
		}
		return false
	}))
}

// search is a page that is being read.
type search struct {
	Query

	page    Page
	lowest  int64 // number of a line that was read
	results map[int64]line
	// read counts bytes of lines before Before, and all counts those of all lines.
	read, all int64
}

// scan reads a file backwards from an offset, and reports whether the page is whole.
func (s *search) scan(ctx context.Context, f *os.File, end int64) (done bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	end = min(end, info.Size())
	var tail []byte // of a line whose beginning was not read yet
	for end > 0 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		begin := max(0, end-maxRead)
		text := make([]byte, end-begin, end-begin+int64(len(tail)))
		if _, err := f.ReadAt(text, begin); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		lines := bytes.Split(append(text, tail...), []byte("\n"))
		if tail = nil; begin > 0 && len(lines[0]) < maxLine {
			tail = lines[0] // a longer one is no line of the log
		}
		if begin > 0 {
			lines = lines[1:]
		}
		for _, text := range slices.Backward(lines) {
			if l, err := lineOf(text); err == nil && s.take(l) {
				return true, nil
			}
		}
		if s.count(end - begin) {
			return true, nil
		}
		end = begin
	}
	return false, nil
}

// count counts bytes, and reports whether enough were read. Lines that cannot be read may hide where a page begins: then it has no next.
func (s *search) count(n int64) (enough bool) {
	behind := s.Before > 0 && s.lowest >= s.Before
	if s.all += n; !behind {
		s.read += n
	}
	if s.read < maxScan && s.all < maxScan+lookahead*maxLine {
		return false
	}
	if s.page.Incomplete = "the log is long, and enough was read for one list: go on before next"; !behind {
		s.page.Next = s.lowest
	}
	return true
}

// take takes the line before the last one, and reports whether the page is whole.
func (s *search) take(l line) (done bool) {
	s.lowest = min(s.lowest, l.Seq)
	if l.Phase == Result {
		s.results[l.Of] = l
		return false
	}
	c := Change{Seq: l.Seq, Time: l.Time, Record: l.Record}
	if l.Phase == Read {
		c.Ended = l.Time
	}
	if r, ok := s.results[l.Seq]; ok {
		delete(s.results, l.Seq)
		c.Ended, c.Status, c.Carried = r.Time, r.Status, r.Carried
		c.Resource = cmp.Or(c.Resource, r.Resource)
	}
	switch {
	case s.Before > 0 && l.Seq >= s.Before:
		return false
	case l.Time.Before(s.Since):
		return true
	case s.Reads == (l.Phase == Read) && s.selects(&c):
		s.page.Changes = append(s.page.Changes, c)
	}
	if len(s.page.Changes) == s.Limit && s.Limit > 0 {
		s.page.Next = l.Seq
		return true
	}
	return false
}
