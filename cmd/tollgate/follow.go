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

// The command with the flag --follow, and the path of its event stream.
const (
	followedCommand = "decisions"
	decisionStream  = "/admin/decisions/stream"
)

// maxEvent limits the size of an event, in bytes.
const maxEvent = 1 << 20

// follower writes decisions as they arrive.
type follower struct {
	out      *output
	w, notes io.Writer
	widths   map[int]int // column widths so far
}

// follow writes new decisions that match the query until ctx ends.
func (c *rowCommand) follow(ctx context.Context, q url.Values, w, notes io.Writer) error {
	for _, name := range []string{"since", "before", "limit"} {
		if c.given.Has(name) {
			return usagef("--%s selects past decisions and cannot be combined with --follow", name)
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

// read reads server-sent events (WHATWG HTML, section "Server-sent events") whose data is one line. A stream begins with the comment
// "open".
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
		return fmt.Errorf("decision stream: %w", err)
	}
	return errors.New("decision stream closed by the gateway")
}

// take handles one event. For the event "end" it returns an error with the gateway's reason.
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
		_, _ = fmt.Fprintf(f.notes, "%d decisions skipped, because the output was too slow\n", about.Missed)
		return err
	case "end":
		if err := json.Unmarshal(data, &about); err != nil {
			return err
		}
		return fmt.Errorf("decision stream closed by the gateway: %s", about.Reason)
	}
	return nil
}

// decision writes a decision as a table row, as CSV, as JSON or as a YAML document.
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

// row writes the last element of rows. The first element holds the column names.
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
