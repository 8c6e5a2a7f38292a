package parity

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNoValidBodyIsRefused: within 102400 bytes, size is no reason.
func TestNoValidBodyIsRefused(t *testing.T) {
	env := func(n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(`"V%d":"x"`, i)
		}
		return `"env":{` + strings.Join(parts, ",") + `}`
	}
	words := func(n int) string { return `"cmd":["` + strings.Repeat(`w","`, n-1) + `w"]` }
	ports := `"ports":["80/http","80/http"]`
	for name, member := range map[string]string{
		"one long string":       `"env":{"A":"` + strings.Repeat("x", 101_000) + `"}`,
		"300 variables":         env(300),
		"as many as there fit":  env(8_000),
		"1001 words":            words(1001),
		"8000 words":            words(8_000),
		"an integer as 20.0":    `"disk":20.0`,
		"an integer as 2e1":     `"disk":2e1`,
		"escape in a value":     `"env":{"PS1":"\u001b[1m"}`,
		"DEL in a value":        "\"env\":{\"A\":\"\x7f\"}",
		"a port listed twice":   ports,
		"a long name of a pair": `"env":{"` + strings.Repeat("N", 70_000) + `":"v"}`,
	} {
		t.Run(name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				body := `{"name":"p","image":"img:1","gpu":{"id":"NVIDIA L4"},` + member + `}`
				if len(body) > 102_400 {
					t.Fatalf("the body has %d bytes", len(body))
				}
				began := time.Now()
				got := d.ask(t, request("POST", "/v2/pods", "key_research", body))
				if got.Status != 201 {
					t.Errorf("%d %.300s", got.Status, got.Body)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("answered after %v", took)
				}
				if sent := d.platform.CallsTo("createPod"); len(sent) == 1 && strings.Contains(member, "disk") && !strings.Contains(string(sent[0].Body), `"disk":20,`) {
					t.Errorf("the platform was sent %s, want the number in plain digits", sent[0].Body)
				}
			})
		})
	}
}

// TestBodiesFullOfFaults: a body with a thousand faults is refused as fast.
func TestBodiesFullOfFaults(t *testing.T) {
	d := openDoor(t, "http")
	for name, format := range map[string]string{
		"unknown members": `"m%d":1`, "variables that are no strings": `"V%d":1`, "names with an equals sign": `"V=%d":"x"`,
	} {
		parts := make([]string, 7000)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		members := strings.Join(parts, ",")
		if name != "unknown members" {
			members = `"env":{` + members + `}`
		}
		began := time.Now()
		got := d.ask(t, request("POST", "/v2/pods", "key_research", `{"name":"p","image":"img:1","gpu":{"id":"NVIDIA L4"},`+members+`}`))
		if took := time.Since(began); got.Status != 422 && got.Status != 400 || took > 2*time.Second || len(got.Body) > 64<<10 {
			t.Errorf("%s: %d after %v with %d bytes", name, got.Status, took, len(got.Body))
		}
	}
}

// TestEmptyBodies: clients that send {} with everything are served, and it is not
// passed on.
func TestEmptyBodies(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.ask(t, request("POST", "/v2/pods", "key_research", `{"name":"p","image":"img:1","gpu":{"id":"NVIDIA L4"}}`))
		pod := answeredID(made)
		for _, call := range []struct {
			method, target string
			status         int
		}{{"GET", "/v2/pods/" + pod, 200}, {"DELETE", "/v2/pods/" + pod, 204}} {
			if got := d.ask(t, request(call.method, call.target, "key_research", `{"a":1}`)); got.Status != 400 {
				t.Errorf("%s %s with members: %d, want 400", call.method, call.target, got.Status)
			}
			if got := d.ask(t, request(call.method, call.target, "key_research", ` { } `)); got.Status != call.status {
				t.Errorf("%s %s with {}: %d %s, want %d", call.method, call.target, got.Status, got.Body, call.status)
			}
		}
		for _, c := range d.platform.Calls() {
			if c.Operation != "createPod" && len(c.Body) > 0 {
				t.Errorf("%s reached the platform with the body %q", c.Operation, c.Body)
			}
		}
	})
}

// TestRefusedValues: one bad value is not called a contradiction, and an empty template is refused as by the platform.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for body, want := range map[string]struct {
			status int
			text   string
		}{
			`{"templateId":""}`:   {422, "Request validation failed."},
			`{"disk":1000000000}`: {400, "the body has values that this operation does not accept"},
			`{"image":""}`:        {400, "the body has values that this operation does not accept"},
		} {
			if a := d.ask(t, request("PATCH", "/v2/pods/p1", "key_research", body)); a.Status != want.status || !strings.Contains(a.Body, want.text) {
				t.Errorf("%s: %d %s, want %d %s", body, a.Status, a.Body, want.status, want.text)
			}
		}
	})
}
