package platform

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFaultsThatRefuse(t *testing.T) {
	tests := []struct {
		fault  Fault
		status int
		retry  string
	}{
		{Fault{Kind: FaultCapacity}, 400, ""},
		{Fault{Kind: FaultBalance}, 402, ""},
		{Fault{Kind: FaultForbidden}, 403, ""},
		{Fault{Kind: FaultRateLimit, RetryAfter: 7}, 429, "7"},
		{Fault{Kind: FaultStatus}, 500, ""},
		{Fault{Kind: FaultStatus, Status: 503, Detail: "down for an hour"}, 503, ""},
	}
	for _, tt := range tests {
		r := newRig(t, Options{})
		tt.fault.Operation, tt.fault.Times = "createPod", 1
		r.AddFault(tt.fault)
		r.want(200, "GET", "/v2/pods", "")
		a := r.want(tt.status, "POST", "/v2/pods", gpuPod)
		if got := a.header.Get("Retry-After"); got != tt.retry {
			t.Errorf("%s: got Retry-After %q, want %q", tt.fault.Kind, got, tt.retry)
		}
		if tt.fault.Detail != "" && a.text("detail") != tt.fault.Detail {
			t.Errorf("%s: got detail %q, want %q", tt.fault.Kind, a.text("detail"), tt.fault.Detail)
		}
		if got := r.want(200, "GET", "/v2/pods", "").raw; got != empty("pods") {
			t.Errorf("%s: the operation was carried out: %s", tt.fault.Kind, got)
		}
		r.want(201, "POST", "/v2/pods", gpuPod)
	}
}

func TestFaultAfter(t *testing.T) {
	r := newRig(t, Options{})
	r.AddFault(Fault{Operation: "createPod", Kind: FaultStatus, Status: 502, After: true, Times: 1})
	r.want(502, "POST", "/v2/pods", gpuPod)
	if got := r.want(200, "GET", "/v2/pods", "").text("pods.0.name"); got != "a" {
		t.Errorf("a fault after the fact undid the fact: pod named %q", got)
	}
	if got := r.CallsTo("createPod")[0]; got.Fault != FaultStatus || got.Status != 502 {
		t.Errorf("recorded: got fault %q, status %d", got.Fault, got.Status)
	}
}

func TestFaultChoice(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: "a", Exempt: true}, {ID: "b", Key: "b"}}})
	id := r.AddFault(Fault{Account: "b", Kind: FaultForbidden})
	r.as("a").want(200, "GET", "/v2/pods", "")
	r.as("b").want(403, "GET", "/v2/pods", "")
	if !r.RemoveFault(id) || r.RemoveFault(id) {
		t.Error("RemoveFault: want true, then false")
	}
	r.as("b").want(200, "GET", "/v2/pods", "")
	r.AddFault(Fault{Probability: 0.5, Kind: FaultStatus})
	hits := 0
	for range 400 {
		if r.as("a").call("GET", "/v2/pods", "").status == 500 {
			hits++
		}
	}
	if hits < 150 || hits > 250 {
		t.Errorf("probability 0.5 hit %d of 400 calls", hits)
	}
	r.ClearFaults()
	if n := len(r.Faults()); n != 0 {
		t.Errorf("after ClearFaults: %d faults", n)
	}
	if err := (Fault{Kind: "nonsense", Probability: 2, Times: -1, Status: 99}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("Validate: got %v, want four faults", err)
	}
}

// ask makes one call over the network and returns what came of it.
func ask(ctx context.Context, p *Instance, path string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+DefaultKey)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func TestFaultsOnTheWire(t *testing.T) {
	tests := []struct {
		fault Fault
		check func(t *testing.T, status int, body []byte, err error)
	}{
		{Fault{Kind: FaultDrop}, func(t *testing.T, _ int, _ []byte, err error) {
			t.Helper()
			if !errors.Is(err, io.EOF) {
				t.Errorf("got error %v, want EOF", err)
			}
		}},
		{Fault{Kind: FaultCut}, func(t *testing.T, status int, body []byte, err error) {
			t.Helper()
			if status != 200 || !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != empty("pods")[:len(empty("pods"))/2] {
				t.Errorf("got %d %q %v, want half a body", status, body, err)
			}
		}},
		{Fault{Kind: FaultMalformed}, func(t *testing.T, status int, body []byte, err error) {
			t.Helper()
			if status != 200 || err != nil || !bytes.HasPrefix(body, []byte(`{"id": "half`)) {
				t.Errorf("got %d %q %v", status, body, err)
			}
		}},
		{Fault{Kind: FaultHuge}, func(t *testing.T, status int, body []byte, err error) {
			t.Helper()
			if status != 200 || err != nil || len(body) < bombSize {
				t.Errorf("got %d, %d bytes, %v", status, len(body), err)
			}
		}},
		{Fault{Kind: FaultBomb}, func(t *testing.T, _ int, body []byte, err error) {
			t.Helper()
			z, zerr := gzip.NewReader(bytes.NewReader(body))
			if err != nil || zerr != nil {
				t.Fatalf("got %v, %v", err, zerr)
			}
			if n, err := io.Copy(io.Discard, z); n != bombSize || err != nil || len(body) > 100_000 {
				t.Errorf("%d bytes expand to %d (%v)", len(body), n, err)
			}
		}},
		{Fault{Kind: FaultSlow, Delay: time.Millisecond}, func(t *testing.T, status int, body []byte, err error) {
			t.Helper()
			if status != 200 || err != nil || string(body) != empty("pods") {
				t.Errorf("got %d %q %v", status, body, err)
			}
		}},
		{Fault{Kind: FaultTrickle, Delay: time.Microsecond}, func(t *testing.T, status int, body []byte, err error) {
			t.Helper()
			if status != 200 || err != nil || string(body) != empty("pods") {
				t.Errorf("got %d %q %v", status, body, err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault.Kind), func(t *testing.T) {
			p := RunT(t)
			p.AddFault(tt.fault)
			status, body, err := ask(t.Context(), p, "/v2/pods")
			tt.check(t, status, body, err)
		})
	}
}

func TestHangUntilTheClientLeaves(t *testing.T) {
	p := RunT(t)
	p.AddFault(Fault{Kind: FaultHang})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := ask(ctx, p, "/v2/pods")
		done <- err
	}()
	if _, err := p.waitCalls(t.Context(), "listPods", 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the client's own cancel", err)
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	p := RunT(t)
	p.AddFault(Fault{Kind: FaultHang})
	done := make(chan error)
	go func() {
		_, _, err := ask(t.Context(), p, "/v2/pods")
		done <- err
	}()
	if _, err := p.waitCalls(t.Context(), "listPods", 1); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a call that hung got an answer from a closed emulator")
	}
}
