package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// followed is the command whose answer the gateway also streams, and the path of the stream.
const (
	followedCommand = "decisions"
	decisionStream  = "/admin/decisions/stream"
)

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 1 << 20

// follower writes decisions as they are made.
type follower struct {
	out      *output
	w, notes io.Writer
	widths   map[int]int // of the columns so far
}

// follow writes the selected decisions from now on, until ctx ends.
func (c *rowCommand) follow(ctx context.Context, q url.Values, w, notes io.Writer) error {
	for _, name := range []string{"since", "before", "limit"} {
		if c.given.Has(name) {
			return usagef("--%s selects past decisions: leave it out with --follow", name)
		}
	}
	res, err := c.client.open(ctx, http.MethodGet, decisionStream+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	f := &follower{out: c.out, w: w, notes: notes, widths: make(map[int]int)}
	if err := f.read(res.Body); ctx.Err() == nil {
		return err
	}
	return nil
}

// read takes server-sent events (WHATWG HTML, section "Server-sent events") whose data is one line. A stream begins with the
// comment "open".
func (f *follower) read(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEvent)
	event := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		var err error
		switch {
		case field == "" && value == "open":
			err = f.row(decisionColumns())
		case field == "event":
			event = value
		case field == "data":
			err = f.take(event, []byte(value))
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("stream of decisions: %w", err)
	}
	return errors.New("the gateway closed the stream of decisions")
}

// take handles one event. The error of "end" has the gateway's reason.
func (f *follower) take(event string, data []byte) error {
	var about struct {
		Missed int64
		Reason string
	}
	switch event {
	case "decision":
		return f.decision(data)
	case "missed":
		err := json.Unmarshal(data, &about)
		_, _ = fmt.Fprintf(f.notes, "%d decisions are missing: they were made faster than they could be written\n", about.Missed)
		return err
	case "end":
		if err := json.Unmarshal(data, &about); err != nil {
			return err
		}
		return fmt.Errorf("the gateway closed the stream of decisions: %s", about.Reason)
	}
	return nil
}

// decision writes a decision: a line of a table, of CSV, or of JSON, or a YAML document.
func (f *follower) decision(data []byte) error {
	switch f.out.format {
	case "json":
		_, err := fmt.Fprintf(f.w, "%s\n", data)
		return err
	case "yaml":
		_, _ = fmt.Fprintln(f.w, "---")
		return f.out.raw(f.w, data)
	}
	s := new(explain.Summary)
	if err := json.Unmarshal(data, s); err != nil {
		return err
	}
	return f.row(decisionColumns(), decisionCells(s))
}

// row writes the last of some rows of a table, the first of which names the columns.
func (f *follower) row(rows ...[]any) error {
	t := sheet(rows)
	last := len(t) - 1
	switch f.out.format {
	case "csv":
		return adminapi.WriteCSV(f.w, t.texts()[last:])
	case "table":
		_, err := fmt.Fprintln(f.w, t.lines(f.widths, inColour(f.w))[last])
		return err
	}
	return nil
}
