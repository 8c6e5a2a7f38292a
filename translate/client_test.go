package translate

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// statuses answers with one status after the other; 0 is a lost answer.
func statuses(calls *int, list ...int) callerFunc {
	return func(context.Context, *Request) (*Response, error) {
		status := list[min(*calls, len(list)-1)]
		*calls++
		if status == 0 {
			return nil, ErrAmbiguous
		}
		return &Response{Status: status, Header: http.Header{"Retry-After": {"2"}}}, nil
	}
}

func TestSend(t *testing.T) {
	tests := map[string]struct {
		answers []int
		repeat  RetryPolicy
		budget  time.Duration
		status  int
		calls   int
		slept   time.Duration
	}{
		"read recovers":          {[]int{500, 502, 200}, RetryRead, 0, 200, 3, 1500 * time.Millisecond},
		"read gives up":          {[]int{500}, RetryRead, 0, 500, 4, 3500 * time.Millisecond},
		"change repeats twice":   {[]int{503, 503, 503}, RetryChange, 0, 503, 3, 1500 * time.Millisecond},
		"action repeats once":    {[]int{500, 200}, RetryAction, 0, 200, 2, 500 * time.Millisecond},
		"create is not repeated": {[]int{500, 200}, NoRetry, 0, 500, 1, 0},
		"lost read is repeated":  {[]int{0, 200}, RetryRead, 0, 200, 2, 500 * time.Millisecond},
		"429 waits":              {[]int{429, 200}, NoRetry, 0, 200, 2, 2 * time.Second},
		"429 waits once":         {[]int{429, 429, 200}, RetryRead, 0, 429, 2, 2 * time.Second},
		"429 beyond the budget":  {[]int{429, 200}, RetryRead, 2 * time.Second, 429, 1, 0},
		"4xx is an answer":       {[]int{404}, RetryRead, 0, 404, 1, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, calls := newClock(), 0
			d := NewClient(Deps{Now: c.now, Sleep: c.sleep}, statuses(&calls, tt.answers...), &Incoming{Account: "acct"}, tt.budget)
			resp, err := d.Send(t.Context(), &Request{Operation: "x"}, tt.repeat)
			if err != nil || resp.Status != tt.status || calls != tt.calls {
				t.Errorf("Send = %+v, %v after %d calls, want %d after %d", resp, err, calls, tt.status, tt.calls)
			}
			if slept := c.t.Sub(newClock().t); slept != tt.slept {
				t.Errorf("slept %v, want %v", slept, tt.slept)
			}
		})
	}
}

func TestSendStopsWhenTheCallerLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, calls := newClock(), 0
	d := NewClient(Deps{Now: c.now, Sleep: c.sleep}, callerFunc(func(context.Context, *Request) (*Response, error) {
		calls++
		cancel()
		return nil, context.Canceled
	}), &Incoming{Account: "acct"}, 0)
	if _, err := d.Send(ctx, &Request{}, RetryRead); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("Send = %v after %d calls, want %v after 1", err, calls, context.Canceled)
	}
}

func TestDialogueWithoutACaller(t *testing.T) {
	d := NewClient(Deps{}, nil, &Incoming{Account: "acct"}, 0)
	if _, err := d.Call(t.Context(), &Request{Operation: "x"}); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("Call = %v, want %v", err, ErrAmbiguous)
	}
}

// reported returns what d reports about its calls.
func reported(d *Client) *Outgoing {
	out := &Outgoing{Header: http.Header{}}
	d.Report(out, "")
	return out
}

func TestWarnings(t *testing.T) {
	d := NewClient(Deps{}, nil, &Incoming{Account: "acct"}, 0)
	d.WarnLost("a", "same")
	d.WarnLost("a", "same")
	d.WarnLost("b", "line\r\nbreak ü "+strings.Repeat("x", 300))
	for i := range 20 {
		d.WarnLost("c", strings.Repeat("i", i))
	}
	got := reported(d).Warnings
	if len(got) != 10 || got[0] != "a: same" || len(got[1]) != 200 || !strings.HasPrefix(got[1], "b: line??break ? xxx") {
		t.Errorf("Warnings = %d: %q", len(got), got)
	}
}

func TestEachRunsAllButFewAtOnce(t *testing.T) {
	d := NewClient(Deps{}, nil, &Incoming{Account: "acct"}, 0)
	var now, most, done atomic.Int32
	d.Each(t.Context(), 50, func(context.Context, int) {
		most.Store(max(most.Load(), now.Add(1)))
		done.Add(1)
		now.Add(-1)
	})
	if done.Load() != 50 || most.Load() > MaxParallel {
		t.Errorf("%d of 50 ran, %d at once, want all and at most %d", done.Load(), most.Load(), MaxParallel)
	}
}

func TestCatalog(t *testing.T) {
	c := newClock()
	var calls []string
	status := 200
	caller := callerFunc(func(_ context.Context, r *Request) (*Response, error) {
		calls = append(calls, r.Operation+"?"+r.Query.Encode())
		return &Response{Status: status, Body: map[string]any{"gpus": []any{map[string]any{"id": "a"}}, "dataCenters": []any{map[string]any{"id": "d"}}}}, nil
	})
	catalog := newCatalog()
	dialogue := func(account string) *Client {
		return NewClient(Deps{Now: c.now, Sleep: c.sleep}, caller, &Incoming{Account: account}, 0)
	}
	read := func(account string) bool {
		body, failed := catalog.Read(t.Context(), dialogue(account), &Request{Operation: "listGpuTypes"}, "gpus")
		return failed == nil && Text(Items(body, "gpus")[0], "id") == "a"
	}
	expect := func(what string, ok, want bool, made int) {
		t.Helper()
		if ok != want || len(calls) != made {
			t.Errorf("%s: ok %t after %d calls, want %t after %d", what, ok, len(calls), want, made)
		}
		calls = nil
	}
	expect("first", read("acme"), true, 1)
	expect("cached", read("acme"), true, 0)
	expect("another account", read("globex"), true, 1)
	c.t = c.t.Add(31 * time.Second)
	status = 500
	expect("stale while it is down", read("acme"), true, 2)
	expect("and left alone for a while", read("acme"), true, 0)
	expect("nothing to fall back on", read("initech"), false, 2)
	expect("remembered as down", read("initech"), false, 0)
	c.t = c.t.Add(6 * time.Second)
	status = 200
	expect("back again", read("initech"), true, 1)

	centres := &Request{Operation: "listDataCenters"}
	if _, failed := catalog.Read(t.Context(), dialogue("acme"), centres, "dataCenters"); failed != nil {
		t.Error("data centres not read")
	}
	c.t = c.t.Add(299 * time.Second)
	calls = nil
	_, failed := catalog.Read(t.Context(), dialogue("acme"), centres, "dataCenters")
	expect("data centres last 300 s", failed == nil, true, 0)
	if got := Text(Items(catalog.Latest("listGpuTypes"), "gpus")[0], "id"); got != "a" {
		t.Errorf("Latest = %q, want a", got)
	}
}

// What one caller may not read, or may not read now, is no reason to refuse it to another, and no permission either.
func TestCatalogOfEachCaller(t *testing.T) {
	c := newClock()
	catalog := newCatalog()
	status := map[string]int{"ann": 200, "bob": 403}
	read := func(name string) bool {
		caller := callerFunc(func(context.Context, *Request) (*Response, error) {
			return &Response{Status: status[name], Body: map[string]any{"gpus": []any{}}}, nil
		})
		d := NewClient(Deps{Now: c.now, Sleep: c.sleep}, caller, &Incoming{Account: "acme", Caller: name}, 0)
		_, failed := catalog.Read(t.Context(), d, &Request{Operation: "listGpuTypes"}, "gpus")
		return failed == nil
	}
	for _, name := range []string{"bob", "ann", "bob"} {
		if got, want := read(name), status[name] == 200; got != want {
			t.Errorf("%s: read %t, want %t", name, got, want)
		}
	}
	c.t = c.t.Add(31 * time.Second)
	status["ann"] = 403
	if read("ann") {
		t.Error("a caller who may no longer read it got an expired response")
	}
}

func TestGPUQueryValues(t *testing.T) {
	tests := map[string]struct {
		in   GPUQuery
		want url.Values
	}{
		"plain": {GPUQuery{Count: 2, Cloud: "SECURE"}, nil},
		"everything": {
			GPUQuery{Product: "POD", Count: 2, Cloud: "COMMUNITY", CountryCodes: []string{"SE", "RO"}, MinCUDA: "12.4"},
			url.Values{"include": {"AVAILABILITY"}, "product": {"POD"}, "count": {"2"}, "cloud": {"COMMUNITY"}, "countryCodes": {"SE,RO"}, "minCudaVersion": {"12.4"}},
		},
		"the list wins over the floor": {
			GPUQuery{Product: "POD", CUDAVersions: []string{"12.4"}, MinCUDA: "12.0"},
			url.Values{"include": {"AVAILABILITY"}, "product": {"POD"}, "cudaVersions": {"12.4"}},
		},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.in.Values()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLevelIn(t *testing.T) {
	record := map[string]any{"availability": "HIGH", "dataCenters": []any{
		map[string]any{"id": "x", "availability": "LOW"}, map[string]any{"id": "y", "availability": "MEDIUM"},
	}}
	tests := map[string]struct {
		record  any
		centres []string
		want    string
	}{
		"anywhere":         {record, nil, "HIGH"},
		"best of those":    {record, []string{"x", "y"}, "MEDIUM"},
		"not there":        {record, []string{"z"}, "NONE"},
		"no record":        {nil, nil, ""},
		"no record, place": {nil, []string{"x"}, ""},
	}
	for name, tt := range tests {
		if got, want := LevelIn(tt.record, tt.centres), Level(tt.want); got != want {
			t.Errorf("%s: LevelIn = %d, want %d (%q)", name, got, want, tt.want)
		}
	}
}
