package translate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// clock is a fake time: Sleep moves it.
type clock struct {
	t      time.Time
	sleeps []time.Duration
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.t }

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.sleeps = append(c.sleeps, d)
	c.t = c.t.Add(d)
	return ctx.Err()
}

// script answers createPod calls from a list.
type script struct {
	answers []any // int status, string 400 detail, error, or *Response
	calls   []string
}

func (s *script) Call(_ context.Context, r *Request) (*Response, error) {
	s.calls = append(s.calls, Text(r.Body, "gpu", "id"))
	if len(s.answers) == 0 {
		return nil, errors.New("unexpected call")
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	switch a := next.(type) {
	case error:
		return nil, a
	case string:
		return problem(400, a), nil
	case *Response:
		return a, nil
	case int:
		if a == 201 {
			return &Response{Status: 201, Body: map[string]any{"id": "new", "gpu": At(r.Body, "gpu")}}, nil
		}
		return problem(a, fmt.Sprintf("detail %d", a)), nil
	}
	panic("bad script")
}

func problem(status int, detail string) *Response {
	return &Response{
		Status: status, Header: http.Header{},
		Body: map[string]any{"title": "t", "status": Int(int64(status)), "detail": detail},
	}
}

func limited(seconds string) *Response {
	r := problem(429, "slow down")
	r.Header.Set("Retry-After", seconds)
	return r
}

func pods(ids ...string) []Candidate {
	var list []Candidate
	for _, id := range ids {
		list = append(list, Candidate{Label: id, Request: &Request{
			Operation: "createPod",
			Body:      map[string]any{"name": "n", "image": "i", "gpu": map[string]any{"id": id, "count": json.Number("1")}},
		}})
	}
	return list
}

const short = "There are no instances currently available"

func TestRunCandidates(t *testing.T) {
	over := &Response{Status: 402, Refused: true}
	lost := fmt.Errorf("read: %w", ErrAmbiguous)
	tests := map[string]struct {
		answers []any
		gpus    []string
		verdict Verdict
		id      string
		status  int
		calls   string
		slept   time.Duration
	}{
		"first":                   {answers: []any{201}, verdict: Placed, status: 201, id: "new", calls: "a"},
		"third after shortages":   {answers: []any{short, short, 201}, verdict: Placed, status: 201, id: "new", calls: "a b c"},
		"402 stops":               {answers: []any{402}, verdict: Stopped, status: 402, calls: "a"},
		"over budget skips":       {answers: []any{over, 201}, verdict: Placed, status: 201, id: "new", calls: "a b"},
		"over budget for all":     {answers: []any{over, 403, over}, verdict: Stopped, status: 402, calls: "a b c"},
		"over budget, shortage":   {answers: []any{over, short, 403}, verdict: Stopped, status: 402, calls: "a b c"},
		"shortage, over budget":   {answers: []any{short, short, over}, verdict: Stopped, status: 402, calls: "a b c"},
		"violation, over budget":  {answers: []any{over, 403, "bad port"}, verdict: Refused, status: 400, calls: "a b c"},
		"503 of the gateway":      {answers: []any{&Response{Status: 503, Refused: true}}, verdict: Broken, status: 503, calls: "a"},
		"401 stops":               {answers: []any{401}, verdict: Stopped, status: 401, calls: "a"},
		"404 stops":               {answers: []any{short, 404}, verdict: Stopped, status: 404, calls: "a b"},
		"413 stops":               {answers: []any{413}, verdict: Stopped, status: 413, calls: "a"},
		"422 stops":               {answers: []any{422}, verdict: Stopped, status: 422, calls: "a"},
		"403 skips":               {answers: []any{403, 201}, verdict: Placed, status: 201, id: "new", calls: "a b"},
		"403 for all":             {answers: []any{403, 403, 403}, verdict: Forbidden, status: 403, calls: "a b c"},
		"403 and shortage":        {answers: []any{403, short, 403}, verdict: Shortage, status: 400, calls: "a b c"},
		"403 and violation":       {answers: []any{"bad port", 403, short}, verdict: Shortage, status: 400, calls: "a b c"},
		"shortage":                {answers: []any{short, short, short}, verdict: Shortage, status: 400, calls: "a b c"},
		"violation twice stops":   {answers: []any{"bad port", "bad port"}, verdict: Refused, status: 400, calls: "a b"},
		"violation apart goes on": {answers: []any{"bad port", short, "bad port"}, verdict: Refused, status: 400, calls: "a b c"},
		"429 repeats the same":    {answers: []any{limited("1"), 201}, verdict: Placed, status: 201, id: "new", calls: "a a", slept: time.Second},
		"429 beyond the budget":   {answers: []any{limited("60")}, verdict: Stopped, status: 429, calls: "a"},
		"500 500 201":             {answers: []any{500, 500, 201}, verdict: Placed, status: 201, id: "new", calls: "a a a", slept: 1500 * time.Millisecond},
		"5xx gives up":            {answers: []any{500, 502, 503, 504}, verdict: Broken, status: 504, calls: "a a a a", slept: 3500 * time.Millisecond},
		"unfinished stops":        {answers: []any{short, &UnfinishedError{"pod"}}, verdict: Unfinished, calls: "a b"},
		"lost stops":              {answers: []any{lost}, verdict: Broken, calls: "a"},
		"no candidates":           {gpus: []string{}, verdict: Shortage, calls: ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			s := &script{answers: tt.answers}
			d := NewClient(Deps{Now: c.now, Sleep: c.sleep}, s, &Incoming{Account: "acct"}, 0)
			gpus := tt.gpus
			if gpus == nil {
				gpus = []string{"a", "b", "c"}
			}
			got := RunCandidates(t.Context(), d, pods(gpus...))
			if got.Verdict != tt.verdict {
				t.Errorf("verdict = %v, want %v (response %+v, err %v)", got.Verdict, tt.verdict, got.Response, got.Err)
			}
			status, id := 0, ""
			if got.Response != nil {
				status, id = got.Response.Status, Text(got.Response.Body, "id")
			}
			if status != tt.status || id != tt.id {
				t.Errorf("answer = %d %q, want %d %q", status, id, tt.status, tt.id)
			}
			if calls := strings.Join(s.calls, " "); calls != tt.calls {
				t.Errorf("calls = %q, want %q", calls, tt.calls)
			}
			if slept := c.t.Sub(newClock().t); slept != tt.slept {
				t.Errorf("slept %v, want %v", slept, tt.slept)
			}
		})
	}
}

func TestRunCandidatesTriesAtMost24(t *testing.T) {
	c := newClock()
	s := &script{}
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprint(i))
		s.answers = append(s.answers, short)
	}
	d := NewClient(Deps{Now: c.now, Sleep: c.sleep}, s, &Incoming{Account: "acct"}, 0)
	got := RunCandidates(t.Context(), d, pods(ids...))
	if got.Verdict != Shortage || len(s.calls) != MaxCandidates {
		t.Errorf("verdict %v after %d calls, want %v after %d", got.Verdict, len(s.calls), Shortage, MaxCandidates)
	}
}

func TestRunCandidatesEndsWithTheBudget(t *testing.T) {
	c := newClock()
	s := &script{answers: []any{limited("20"), short, 201}}
	d := NewClient(Deps{Now: c.now, Sleep: c.sleep}, s, &Incoming{Account: "acct"}, 20500*time.Millisecond)
	run := RunCandidates(t.Context(), d, pods("a", "b"))
	if run.Verdict != Placed || run.Index != 1 {
		t.Fatalf("verdict %v index %d, want placed on 1", run.Verdict, run.Index)
	}
	c.t = c.t.Add(time.Minute)
	late := RunCandidates(t.Context(), d, pods("a"))
	if late.Verdict != Shortage || late.Response != nil {
		t.Errorf("after the budget: verdict %v response %v, want shortage without response", late.Verdict, late.Response)
	}
}

func TestCandidatesStopWhenTheCallerLeaves(t *testing.T) {
	c := newClock()
	ctx, cancel := context.WithCancel(t.Context())
	s := callerFunc(func(context.Context, *Request) (*Response, error) {
		cancel()
		return nil, context.Canceled
	})
	d := NewClient(Deps{Now: c.now, Sleep: c.sleep}, s, &Incoming{Account: "acct"}, 0)
	got := RunCandidates(ctx, d, pods("a", "b"))
	if got.Verdict != Broken || !errors.Is(got.Err, context.Canceled) {
		t.Errorf("verdict %v err %v, want broken by cancel", got.Verdict, got.Err)
	}
	if diff := cmp.Diff([]string{"createPod"}, reported(d).V2); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

type callerFunc func(context.Context, *Request) (*Response, error)

func (f callerFunc) Call(ctx context.Context, r *Request) (*Response, error) { return f(ctx, r) }
