package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Chain is a chain of lines that was verified.
type Chain struct {
	// First and Last are the numbers of its first and last line, 0 for none.
	First, Last int64
	// Head is the SHA-256 of its last line, in hexadecimal digits. A chain that was cut
	// at its end is whole; only a head that was kept elsewhere shows the cut.
	Head string
	// Incomplete counts lines that a crash left incomplete.
	Incomplete int

	lines int
	open  map[int64]bool
}

// Unfinished returns the intents without a result, in order: changes under way, or those
// of a gateway that was killed.
func (c *Chain) Unfinished() []int64 { return slices.Sorted(maps.Keys(c.open)) }

// BrokenError is a line that does not fit the one before.
type BrokenError struct {
	// File is the name given to Verify; Line counts from 1.
	File   string
	Line   int
	Reason string
}

// Error implements error.
func (e *BrokenError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// Verify reads on in the chain, oldest file first: each line must hold the sum of
// the one before. It calls seen with the sum of each, and returns a *BrokenError for
// the first that does not fit, or the reader's error.
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

// next takes a line, and returns why it does not fit.
func (c *Chain) next(text []byte) (reason string) {
	defer func() { c.Head, c.lines = sum(text), c.lines+1 }()
	var l line
	if json.Unmarshal(text, &l) != nil || l.Seq < 1 {
		c.Incomplete++ // that it was, and not changed, is shown by the next line, which holds its sum
		if c.Last > 0 {
			c.Last++
		}
		return ""
	}
	switch {
	case c.lines > 0 && l.Prev != c.Head:
		return fmt.Sprintf("line number %d does not hold the sum of the line before: that one was changed, or lines between them are missing", l.Seq)
	case c.Last > 0 && l.Seq != c.Last+1:
		return fmt.Sprintf("line number %d follows number %d", l.Seq, c.Last)
	case l.Seq == 1 && c.lines == 0 && l.Prev != "":
		return "the first line of all holds the sum of another"
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
