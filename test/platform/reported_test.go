package platform

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The bound on an expanded request counts a command once, however many words it is
// decomposed into.
func TestLongArgs(t *testing.T) {
	r := newRig(t, Options{})
	pod := func(args string) string {
		return `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"args":"` + args + `"}`
	}
	long := strings.TrimSpace(strings.Repeat("word ", 51_500/5))
	if got := r.want(201, "POST", "/v2/pods", pod(long)).text("args"); got != long {
		t.Errorf("args of %d bytes came back as %d bytes", len(long), len(got))
	}
	tpl := r.want(201, "POST", "/v2/templates", `{"name":"t","image":"i","env":{"A":"`+strings.Repeat("x", 60_000)+`"}}`).text("id")
	body := strings.Replace(pod(long), `"image":"i"`, `"templateId":"`+tpl+`"`, 1)
	r.want(413, "POST", "/v2/pods", body)
}

// The list price of a LoRA generation and how it ends, by the path of its LoRA.
func TestLoRAPaths(t *testing.T) {
	r := newRig(t, Options{})
	for path, want := range map[string]string{
		"https://models.example/a.safetensors": "COMPLETED",
		"http://models.example/a.safetensors":  "COMPLETED",
		"s3://bucket/a.safetensors":            "COMPLETED",
		"maker/motion-lora":                    "COMPLETED",
		"https://models.invalid/a.safetensors": "FAILED",
		"http://models.invalid":                "FAILED",
	} {
		body := `{"input":{"prompt":"p","image":"https://i.example/1.png","high_noise_loras":[{"path":"` + path + `","scale":1}]}}`
		id := r.callOn(r.RunHandler(), "POST", "/v2/wan-2-2-t2v-720-lora/run", body).text("id")
		r.Clock().Advance(1 << 40)
		if got := r.callOn(r.RunHandler(), "GET", "/v2/wan-2-2-t2v-720-lora/status/"+id, "").text("status"); got != want {
			t.Errorf("LoRA from %s: got %s, want %s", path, got, want)
		}
	}
}

// Buckets of any size and number lie in the years that RFC 3339 can write.
func TestBillingYears(t *testing.T) {
	r := newRig(t, Options{})
	for _, tt := range []struct {
		query, from, to string
	}{
		{"bucketSize=year&lastN=20000", "0001-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"bucketSize=year&lastN=2", "2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"bucketSize=year&startTime=0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"bucketSize=week&startTime=0001-01-02T00:00:00Z&endTime=0001-01-09T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-15T00:00:00Z"},
	} {
		for _, path := range []string{"/v2/billing?", "/v2/billing/pods?"} {
			a := r.want(200, "GET", path+tt.query, "")
			got := [2]string{a.text("metadata.query.startTime"), a.text("metadata.query.endTime")}
			if diff := cmp.Diff([2]string{tt.from, tt.to}, got); diff != "" {
				t.Errorf("%s%s (-want +got):\n%s", path, tt.query, diff)
			}
		}
	}
	r.want(400, "GET", "/v2/billing?bucketSize=year&startTime=9998-01-01T00:00:00Z&endTime=9999-06-01T00:00:00Z", "")
}

// An endpoint needs neither a type nor, beside a template, a name and an image.
func TestEndpointDefaults(t *testing.T) {
	r := newRig(t, Options{})
	const rest = `"gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`
	for body, want := range map[string][3]string{
		`{"templateId":"tplworker1",` + rest:            {"Language model worker", "QUEUE", "registry.platform.test/worker-llm:2.9"},
		`{"templateId":"tplworker1","name":"n",` + rest: {"n", "QUEUE", "registry.platform.test/worker-llm:2.9"},
		`{"name":"n","image":"i",` + rest:               {"n", "QUEUE", "i"},
		`{"name":"n","image":"i","type":"LOAD_BALANCER","cpu":[{"id":"cpu3c","vcpuCount":2}],"scaling":{"type":"REQUEST_COUNT","requestCount":1}}`: {"n", "LOAD_BALANCER", "i"},
	} {
		a := r.want(201, "POST", "/v2/serverless", body)
		if diff := cmp.Diff(want, [3]string{a.text("name"), a.text("type"), a.text("image")}); diff != "" {
			t.Errorf("%s: name, type and image (-want +got):\n%s", body, diff)
		}
	}
}

// The request URLs of an endpoint lead back to the emulator that gave them: by the
// address in its options, or else by the one that was called.
func TestRequestURLs(t *testing.T) {
	separate := RunT(t, WithClock(NewClock(start(), 1000))).URL
	one := newRig(t, Options{Clock: NewClock(start(), 1000)})
	combined := httptest.NewServer(one.CombinedHandler())
	t.Cleanup(combined.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(target, body string) (status int, into map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+DefaultKey)
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if err := json.NewDecoder(resp.Body).Decode(&into); err != nil {
			t.Fatalf("POST %s: %v", target, err)
		}
		return resp.StatusCode, into
	}
	for name, base := range map[string]string{"a run listener of its own": separate, "one listener": combined.URL} {
		status, made := post(base+"/v2/serverless", queueEndpoint)
		urls, _ := made["requestUrls"].(map[string]any)
		run, _ := urls["runSync"].(string)
		if status != 201 || run == "" {
			t.Fatalf("%s: create: got %d %v", name, status, made)
		}
		if status, job := post(run, `{"input":{}}`); status != 200 || job["status"] != "COMPLETED" {
			t.Errorf("%s: POST %s: got %d %v, want a completed job", name, run, status, job)
		}
	}
}

// Every port of a running pod has an address: a public one for tcp, one behind the
// proxy for http.
func TestPortAddresses(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newPod(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"ports":["8888/http","22/tcp"]}`)
	r.Clock().Advance(1 << 34)
	var got struct {
		Runtime struct {
			Ports []struct {
				Private, Public int
				Type            string
				IP              netip.Addr
			}
		}
	}
	if err := json.Unmarshal([]byte(r.want(200, "GET", "/v2/pods/"+id, "").raw), &got); err != nil {
		t.Fatal(err)
	}
	ports := got.Runtime.Ports
	if len(ports) != 2 || ports[0].Type != "http" || ports[1].Type != "tcp" {
		t.Fatalf("ports: got %+v, want http and tcp", ports)
	}
	proxied, public := netip.MustParsePrefix("100.65.0.0/16"), netip.MustParsePrefix("203.0.113.0/24")
	if !proxied.Contains(ports[0].IP) || ports[0].Public < 10000 {
		t.Errorf("http port: got %+v, want an address of %s and a public number", ports[0], proxied)
	}
	if !public.Contains(ports[1].IP) || ports[1].Public < 10000 || ports[1].Public == ports[0].Public {
		t.Errorf("tcp port: got %+v, want an address of %s and a number of its own", ports[1], public)
	}
}

// The templates that client programs name by id exist, and make pods.
func TestKnownTemplates(t *testing.T) {
	r := newRig(t, Options{})
	for id, compute := range map[string]string{
		"runpod-torch-v280": `"gpu":{"id":"NVIDIA L4"}`, "runpod-ubuntu": `"cpu":{"id":"cpu3c","vcpuCount":2}`,
	} {
		if got := r.want(201, "POST", "/v2/pods", `{"name":"a","templateId":"`+id+`",`+compute+`}`).text("image"); got == "" {
			t.Errorf("a pod of template %s has no image", id)
		}
	}
}
