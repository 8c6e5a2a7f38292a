package platform

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestControl(t *testing.T) {
	r := newRig(t, Options{})
	h := r.ControlHandler()
	control := func(status int, method, target, body string) answer {
		t.Helper()
		a := r.callOn(h, method, target, body)
		if a.status != status {
			t.Fatalf("%s %s %s: got %d, want %d: %s", method, target, body, a.status, status, a.raw)
		}
		return a
	}
	if got := control(200, "POST", "/clock", `{"advance":"90s"}`).text("now"); got != "2026-06-01T12:01:30Z" {
		t.Errorf("clock: got %s", got)
	}
	control(200, "POST", "/clock", `{"to":"2026-06-01T13:00:00Z"}`)
	if got := control(200, "GET", "/clock", "").text("now"); got != "2026-06-01T13:00:00Z" {
		t.Errorf("clock: got %s", got)
	}
	control(400, "POST", "/clock", `{"advance":"soon"}`)
	control(400, "POST", "/clock", `{"forward":"1s"}`)
	for _, body := range []string{
		`{"to":"2026-06-01T12:00:00Z"}`, `{"advance":"-1s"}`, `{"speed":-1}`,
		`{"to":"2026-06-01T12:00:00Z","speed":7}`, `{"advance":"1h","speed":-1}`, `{"advance":"1h","to":"2027-01-01T00:00:00Z"}`,
	} {
		control(400, "POST", "/clock", body)
		if now := control(200, "GET", "/clock", ""); now.text("now") != "2026-06-01T13:00:00Z" || now.at("speed") != 0.0 {
			t.Errorf("%s was refused, but the clock is now %s", body, now.raw)
		}
	}

	id := r.newPod(gpuPod)
	control(204, "PATCH", "/pods/"+id, `{"status":"RUNNING","name":"b","cost":0.5,"locked":true}`)
	p := r.want(200, "GET", "/v2/pods/"+id, "")
	if p.text("status") != "RUNNING" || p.text("name") != "b" || p.at("cost") != 0.5 || p.at("locked") != true {
		t.Errorf("pod changed behind its owner's back: got %s", p.raw)
	}
	control(400, "PATCH", "/pods/nope", `{"status":"RUNNING"}`)
	control(400, "PATCH", "/pods/"+id, `{"status":"DANCING"}`)

	if got := control(200, "GET", "/environments/"+id, ""); len(got.body) != 0 {
		t.Errorf("environment: got %s", got.raw)
	}
	control(400, "GET", "/environments/nope", "")

	fault := control(200, "POST", "/faults", `{"kind":"capacity","operation":"createPod"}`).text("id")
	r.want(400, "POST", "/v2/pods", gpuPod)
	control(204, "DELETE", "/faults/"+fault, "")
	control(400, "DELETE", "/faults/"+fault, "")
	control(400, "POST", "/faults", `{"kind":"nonsense"}`)
	control(400, "POST", "/faults", `{"kind":"drop","operation":"createPods"}`)
	control(400, "POST", "/faults", `{"kind":"drop","account":"nope"}`)
	for _, operation := range []string{"runSync", "balanced", "getOpenAPI"} {
		control(200, "POST", "/faults", `{"kind":"drop","operation":"`+operation+`"}`)
	}
	control(204, "DELETE", "/faults", "")

	control(200, "PUT", "/latency", `{"listPods":"1ms"}`)
	if got := control(200, "GET", "/latency", "").text("listPods"); got != "1ms" {
		t.Errorf("latency: got %q", got)
	}
	r.want(200, "GET", "/v2/pods", "")
	control(400, "PUT", "/latency", `{"listPods":"long"}`)
	control(400, "PUT", "/latency", `{"getPod":"1s","listPod":"1s"}`)
	if got := control(200, "GET", "/latency", "").text("getPod"); got != "" {
		t.Errorf("a refused change of latency set %q", got)
	}

	control(204, "PUT", "/prices", `{"gpu":"NVIDIA L4","secure":2,"community":1,"serverless":3}`)
	control(400, "PUT", "/prices", `{"gpu":"nope"}`)
	control(204, "PUT", "/stock", `{"type":"NVIDIA L4","total":0}`)
	control(400, "PUT", "/stock", `{"type":"nope"}`)
	if got := control(200, "PATCH", "/accounts/default", `{"balance":5,"quota":{"Minute":7}}`).at("balance"); got != 5.0 {
		t.Errorf("balance: got %v", got)
	}
	if got := r.want(200, "GET", "/v2/pods", "").header.Get("RateLimit-Policy"); !strings.HasPrefix(got, `"minute";q=7;`) {
		t.Errorf("quota: got %q", got)
	}
	control(400, "GET", "/accounts/nope", "")

	calls := control(200, "GET", "/calls?operation=createPod&since=1", "")
	if list, _ := calls.at("calls").([]any); len(list) != 1 || calls.at("calls.0.status") != 400.0 {
		t.Errorf("calls: got %s", calls.raw)
	}
	control(204, "DELETE", "/calls", "")
	control(404, "GET", "/nowhere", "")
}

func TestClock(t *testing.T) {
	c := ManualClock(start())
	c.Advance(-time.Hour)
	c.AdvanceTo(start().Add(-time.Hour))
	if got := c.Now(); !got.Equal(start()) {
		t.Errorf("the clock ran backwards to %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ctx, start().Add(time.Second), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait past its context: got %v", err)
	}
	done := make(chan error)
	go func() { done <- c.Wait(t.Context(), start().Add(2*time.Second), nil) }()
	c.Advance(time.Second)
	c.Advance(time.Second)
	if err := <-done; err != nil {
		t.Errorf("Wait: %v", err)
	}
	wake := make(chan struct{})
	close(wake)
	if err := c.Wait(t.Context(), start().Add(time.Hour), wake); err != nil {
		t.Errorf("Wait with wake closed: %v", err)
	}
	fast := NewClock(start(), 1e6)
	if err := fast.Wait(t.Context(), start().Add(time.Second), nil); err != nil {
		t.Errorf("Wait on a fast clock: %v", err)
	}
	if fast.Now().Before(start().Add(time.Second)) {
		t.Error("Wait came back early")
	}
	fast.SetSpeed(0)
	if a, b := fast.Now(), fast.Now(); !a.Equal(b) || fast.Speed() != 0 {
		t.Error("a stopped clock went on")
	}
	if RealClock().Speed() != 1 {
		t.Error("RealClock does not run at the speed of time")
	}
}

func TestControlOfSandboxesAndBuilds(t *testing.T) {
	r := newRig(t, Options{})
	h := r.ControlHandler()
	control := func(status int, method, target, body string) answer {
		t.Helper()
		a := r.callOn(h, method, target, body)
		if a.status != status {
			t.Fatalf("%s %s %s: got %d, want %d: %s", method, target, body, a.status, status, a.raw)
		}
		return a
	}
	path := r.newSandbox(`{"imageName":"i","env":{"A":"1"}}`)
	id := strings.TrimPrefix(path, sandboxesPath+"/")
	control(204, "PATCH", "/sandboxes/"+id, `{"state":"RUNNING"}`)
	r.exec(path)
	if got := control(200, "GET", "/environments/"+id, "").text("A"); got != "1" {
		t.Errorf("environment: got %q", got)
	}
	r.Clock().Advance(30 * time.Second)
	control(400, "PATCH", "/sandboxes/"+id, `{"state":"CREATING"}`)
	control(400, "PATCH", "/sandboxes/nope", `{"state":"FAILED"}`)
	control(204, "PATCH", "/sandboxes/"+id, `{"state":"FAILED"}`)
	control(400, "PATCH", "/sandboxes/"+id, `{"state":"RUNNING"}`)
	got := control(200, "GET", "/sandboxes", "")
	if got.text("sandboxes.0.id") != id || got.text("sandboxes.0.account") != "default" || got.text("sandboxes.0.state") != "FAILED" ||
		got.at("sandboxes.0.costPerHr") != 0.026 || got.text("sandboxes.0.endedAt") != "2026-06-01T12:00:30Z" {
		t.Errorf("bills: got %s", got.raw)
	}
	total, _ := got.at("sandboxes.0.total").(float64)
	cents(t, "the bill in millionths", 1e6*total, 1e6*0.026*30/3600)

	endpoint := r.newEndpoint(queueEndpoint)
	build := control(200, "POST", "/serverless/"+endpoint+"/builds", `{"branch":"main","outcome":"TEST_FAILED"}`).text("id")
	if got := r.want(200, "GET", "/v2/serverless/"+endpoint+"/builds", ""); got.text("builds.0.id") != build || got.text("builds.0.branch") != "main" {
		t.Errorf("builds: got %s", got.raw)
	}
	control(400, "POST", "/serverless/nope/builds", `{}`)
	control(400, "POST", "/serverless/"+endpoint+"/builds", `{"outcome":"PENDING"}`)
	control(400, "POST", "/serverless/"+endpoint+"/builds", `{"status":"PENDING"}`)
}
