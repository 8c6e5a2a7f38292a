package audit

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Chain is a chain of verified lines.
type Chain struct {
	// First and Last are the numbers of the first and last line, or 0.
	First, Last int64
	// Head is the SHA-256 of the last line in hexadecimal. A chain that was truncated at its end is valid; only a Head stored
	// elsewhere reveals the truncation.
	Head string
	// Incomplete counts lines that a crash left incomplete.
	Incomplete int

	lines int
	open  map[int64]bool
}

// Unfinished returns the intents without a result, in order: changes in progress, or changes of a gateway that was killed.
func (c *Chain) Unfinished() []int64 { return slices.Sorted(maps.Keys(c.open)) }

// BrokenError describes the first line that does not match the previous one.
type BrokenError struct {
	// File is the name passed to Verify. Line starts at 1.
	File   string
	Line   int
	Reason string
}

// Error implements error.
func (e *BrokenError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// Verify continues the chain with another file. Files must be passed oldest first. Each line must contain the digest of the previous line.
// Verify calls seen with the digest of each line. It returns a *BrokenError for the first line that does not match, or the error of r.
func (c *Chain) Verify(file string, r io.Reader, seen func(sum string)) error {
	if c.open == nil {
		c.open = make(map[int64]bool)
	}
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4<<10), maxLine)
	n := 0
	for in.Scan() {
		n++
		if reason := c.next(in.Bytes()); reason != "" {
			return &BrokenError{file, n, reason}
		}
		seen(c.Head)
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", file, n+1, err)
	}
	return nil
}

// next adds a line and returns the reason if it does not match.
func (c *Chain) next(text []byte) (reason string) {
	defer func() { c.Head, c.lines = sum(text), c.lines+1 }()
	l := parse(text)
	if l.Seq == 0 {
		c.Incomplete++ // the next line contains its digest, which shows that it was incomplete and not changed
		if c.Last > 0 {
			c.Last++
		}
		return ""
	}
	switch {
	case c.lines > 0 && l.Prev != c.Head:
		return fmt.Sprintf("line number %d does not contain the digest of the previous line: that line was changed, or lines are missing in between", l.Seq)
	case c.Last > 0 && l.Seq != c.Last+1:
		return fmt.Sprintf("line number %d follows number %d", l.Seq, c.Last)
	case l.Seq == 1 && c.lines == 0 && l.Prev != "":
		return "first line of the log contains the digest of another line"
	}
	if c.First == 0 {
		c.First = l.Seq
	}
	c.Last = l.Seq
	switch l.Phase {
	case Intent:
		c.open[l.Seq] = true
	case Result:
		delete(c.open, l.Of)
	case Loaded, Read:
	}
	return ""
}
