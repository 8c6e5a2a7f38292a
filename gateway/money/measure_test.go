package money

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// response is a body whose parts are read at their times, and which then stays open until it is closed.
type response struct {
	parts  []part
	read   int
	closed chan struct{}
}

type part struct {
	after time.Duration
	text  string // "" ends the body
}

func (r *response) Read(p []byte) (int, error) {
	if len(r.parts) == 0 {
		<-r.closed
		return 0, errors.New("closed")
	}
	select {
	case <-r.closed:
		return 0, errors.New("closed")
	case <-time.After(r.parts[0].after):
	}
	text := r.parts[0].text
	if text == "" {
		return 0, io.EOF
	}
	n := copy(p, text)
	r.read += n
	if r.parts[0] = (part{0, text[n:]}); n == len(text) {
		r.parts = r.parts[1:]
	}
	return n, nil
}

func (r *response) Close() error {
	select {
	case <-r.closed:
	default:
		close(r.closed)
	}
	return nil
}

// A response whose caller has left is read on for at most 5 s and 1 MB, and for one second after
// its end marker.
func TestReadingOn(t *testing.T) {
	const (
		content = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
		report  = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n"
		marker  = "data: [DONE]\n\n"
	)
	long := strings.Repeat(": "+strings.Repeat("x", 1021)+"\n", 2<<10)
	for name, tc := range map[string]struct {
		before  string
		rest    []part
		held    bool
		took    time.Duration
		counted bool
		most    int
	}{
		"until the end":             {content, []part{{4 * time.Second, report}, {time.Second / 2, ""}}, true, 4500 * time.Millisecond, true, 0},
		"for its time":              {content, []part{{6 * time.Second, report}}, true, 5 * time.Second, false, 0},
		"a report and nothing":      {content + report, nil, true, 5 * time.Second, true, 0},
		"the marker and nothing":    {content + report + marker, nil, true, time.Second, true, 0},
		"the marker, and the end":   {content + report + marker, []part{{600 * time.Millisecond, ""}}, true, 600 * time.Millisecond, true, 0},
		"the marker while reading":  {content, []part{{3 * time.Second, report + marker}}, true, 4 * time.Second, true, 0},
		"a megabyte":                {content, []part{{0, long}, {0, report}}, true, 0, false, 1 << 20},
		"not without a reservation": {content, []part{{0, report}, {0, ""}}, false, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &response{parts: append([]part{{0, tc.before}}, tc.rest...), closed: make(chan struct{})}
				ex := &filter.Exchange{Event: new(telemetry.Event)}
				m := &metered{ReadCloser: body, ex: ex, completes: true, lingers: tc.held}
				if _, err := m.Read(make([]byte, 4<<10)); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				_ = m.Close()
				if took := time.Since(begin); took != tc.took || ex.Cost.Run.Complete != tc.counted {
					t.Errorf("took %s and counted is %t, want %s and %t", took, ex.Cost.Run.Complete, tc.took, tc.counted)
				}
				if tc.most > 0 && body.read-len(tc.before) != tc.most {
					t.Errorf("%d bytes were read, want %d", body.read-len(tc.before), tc.most)
				}
			})
		})
	}
}

// An endpoint that refuses the member stream_options is remembered for an hour.
func TestRefusing(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r := NewStreamOptions(func() time.Time { return now })
	ex := exchange("llm")
	r.markRefused(ex)
	if r.refused(ex) {
		t.Error("an endpoint that refused nothing is remembered")
	}
	ex.Out.Resent, ex.Event.UpstreamStatus = true, 400
	if r.markRefused(ex); r.refused(ex) {
		t.Error("an endpoint that refused both requests is remembered")
	}
	ex.Event.UpstreamStatus = 200
	if r.markRefused(ex); !r.refused(ex) || r.refused(exchange("other")) {
		t.Error("the endpoint is not remembered, or another is")
	}
	if now = now.Add(refusalTTL); r.refused(ex) {
		t.Error("the endpoint is remembered after an hour")
	}
}

// exchange returns the exchange of a chat at an endpoint.
func exchange(endpoint string) *filter.Exchange {
	return &filter.Exchange{
		Caller: &identity.Caller{Org: "acme"}, Params: map[string]string{"id": endpoint}, Operation: &schema.Operation{ID: "chatCompletions"},
		Event: new(telemetry.Event),
	}
}
