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

// Change is an intent with its result, or the loading of a configuration.
type Change struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Record
	// Ended is the time when the result was written. It is omitted for a change in progress and for a change whose gateway was killed.
	Ended time.Time `json:"ended,omitzero"`
}

// SubjectOrg returns the organisation that the change is about: the organisation of the caller, or the organisation that an admin named. It
// returns "" for changes to the whole gateway.
func (c *Change) SubjectOrg() string {
	if c.Org != "" {
		return c.Org
	}
	q, _ := url.ParseQuery(c.Query) // ignore invalid parts
	return q.Get("org")
}

// Query selects changes. A zero field other than Limit selects all changes.
type Query struct {
	// Org selects changes by their SubjectOrg.
	Org string
	// By is the ID of a key, the subject of its token, or the name of an admin.
	By        string
	Operation string
	// Kind is the kind of the subject, such as pod or approval.
	Kind string
	// Resource is an ID or a name.
	Resource string
	// Since selects changes that began at or after a time.
	Since time.Time
	// Before selects changes with a lower number.
	Before int64
	// Reads selects reads of callers' records instead of changes.
	Reads bool
	// Limit is the maximum number of changes; the newest are returned.
	Limit int
}

func (q *Query) selects(c *Change) bool {
	return (q.Org == "" || q.Org == c.SubjectOrg()) && (q.By == "" || q.By == c.Key || q.By == c.Subject || q.By == c.Who) &&
		(q.Operation == "" || q.Operation == c.Operation) && (q.Kind == "" || q.Kind == c.Kind) &&
		(q.Resource == "" || q.Resource == c.Resource || q.Resource == c.Name)
}

// Page is a page of the selected changes, newest first.
type Page struct {
	Changes []Change `json:"changes"`
	// Next is the value of Before for the next page, or 0 at the end of the log.
	Next int64 `json:"next,omitempty"`
	// Incomplete is the reason why the page is shorter than Limit although there may be more changes: the read limit was reached.
	Incomplete string `json:"incomplete,omitempty"`
}

const (
	// maxScan limits the bytes read for one page.
	maxScan = 8 << 20
	// lookahead is the number of lines after a page that are searched for results of its changes.
	lookahead = 500
)

// ErrNotRegular is returned for a log that is written to a pipe or a terminal.
var ErrNotRegular = errors.New("audit log is not a regular file")

// List reads the log backwards through the rotated files, from its end or from a given number. Regardless of the length of the log
// it reads at most maxScan bytes and, before them, lookahead lines. It skips lines that a crash left incomplete.
func (l *Log) List(ctx context.Context, q Query) (Page, error) {
	if info, err := os.Stat(l.config.Path); err == nil && !info.Mode().IsRegular() {
		return Page{}, ErrNotRegular // reading would take lines from the intended reader
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

// block is the distance in bytes at which line numbers are looked up in a file.
const block = maxLine

// behindLine returns an offset shortly after the line with the given number.
func behindLine(f *os.File, seq int64) int64 {
	info, err := f.Stat()
	if err != nil {
		return math.MaxInt64
	}
	text := make([]byte, 2*maxLine)
	return block * int64(sort.Search(int(info.Size()/block)+1, func(i int) bool {
		n, _ := f.ReadAt(text, int64(i)*block) // if no line starts at this position, continue after it
		_, rest, _ := bytes.Cut(text[:n], []byte("\n"))
		for text := range bytes.SplitSeq(rest, []byte("\n")) {
			if known := parse(text); known.Seq > 0 {
				return known.Seq > seq
			}
		}
		return false
	}))
}

// search is the state of reading one page.
type search struct {
	Query

	page    Page
	lowest  int64 // lowest line number read
	results map[int64]line
	// read counts the bytes of lines before Before, all the bytes of all lines.
	read, all int64
}

// scan reads a file backwards from an offset and reports whether the page is complete.
func (s *search) scan(ctx context.Context, f *os.File, end int64) (done bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	end = min(end, info.Size())
	var tail []byte // of a line whose beginning has not been read
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
			tail = lines[0] // a longer line is not a line of the log
		}
		if begin > 0 {
			lines = lines[1:]
		}
		for _, text := range slices.Backward(lines) {
			if l := parse(text); l.Seq > 0 && s.take(l.line) {
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

// count adds n bytes and reports whether the limit is reached. If unreadable lines hide the start of the page, the page has no
// Next.
func (s *search) count(n int64) (enough bool) {
	behind := s.Before > 0 && s.lowest >= s.Before
	if s.all += n; !behind {
		s.read += n
	}
	if s.read < maxScan && s.all < maxScan+lookahead*maxLine {
		return false
	}
	if s.page.Incomplete = "read limit reached; to continue, pass the value of next as the parameter before"; !behind {
		s.page.Next = s.lowest
	}
	return true
}

// take processes the line before the previous one and reports whether the page is complete.
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
		c.Kind, c.Resource, c.Summary = cmp.Or(c.Kind, r.Kind), cmp.Or(c.Resource, r.Resource), r.Summary
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
