package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// caller makes calls on connections of its own.
type caller struct {
	*gateway
	http  http.Client
	turns int
}

// pace is how long a caller waits between two turns: the load is mixed, not heavy.
const pace = 20 * time.Millisecond

// load keeps every kind of caller busy until ctx ends.
func (g *gateway) load(ctx context.Context, t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for name, turn := range map[string]func(*caller, context.Context) error{
		"v2": (*caller).v2, "v1": (*caller).v1, "graphql": (*caller).graphql, "runs": (*caller).runs, "streams": (*caller).stream,
		"refusals": (*caller).refusals, "keys": (*caller).keys, "reloads": (*caller).reload,
	} {
		all.Go(func() {
			c := &caller{gateway: g}
			c.http.Transport = &http.Transport{}
			defer c.http.CloseIdleConnections()
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for ctx.Err() == nil {
				c.turns++
				// A turn is played to its end: it deletes the resources that it made.
				if err := turn(c, context.WithoutCancel(ctx)); err != nil {
					t.Errorf("%s, turn %d: %v", name, c.turns, err)
					return
				}
				<-tick.C
			}
			if c.turns < 2 {
				t.Errorf("%s had %d turns", name, c.turns)
			}
		})
	}
	all.Wait()
}

// ask makes a call, which must be answered with a status.
func (c *caller) ask(ctx context.Context, want int, method, target, key, body string) (map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.data+target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if method == http.MethodPost && c.turns%2 == 0 {
		req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d-%d", target, c.turns, time.Now().UnixNano()))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != want {
		return nil, fmt.Errorf("%s %s: %s, want %d: %s", method, target, res.Status, want, text)
	}
	var doc map[string]any
	_ = json.Unmarshal(text, &doc) // an answer without an object has no members
	return doc, nil
}

// steps makes calls one after the other, the first of which makes what {id} stands for in the others.
func (c *caller) steps(ctx context.Context, key string, steps ...step) error {
	id := ""
	for _, s := range steps {
		doc, err := c.ask(ctx, s.want, s.method, strings.ReplaceAll(s.target, "{id}", id), key, strings.ReplaceAll(s.body, "{id}", id))
		if err != nil {
			return err
		}
		if made, ok := doc["id"].(string); ok && id == "" {
			id = made
		}
	}
	return nil
}

type step struct {
	want                 int
	method, target, body string
}

func (c *caller) v2(ctx context.Context) error {
	return c.steps(ctx, "key_anna",
		step{201, "POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`},
		step{200, "GET", "/v2/pods/{id}", ""}, step{200, "GET", "/v2/pods", ""}, step{200, "PATCH", "/v2/pods/{id}", `{"name":"b"}`},
		step{204, "DELETE", "/v2/pods/{id}", ""})
}

func (c *caller) v1(ctx context.Context) error {
	return c.steps(ctx, "key_bobby",
		step{201, "POST", "/v1/pods", `{"name":"c","imageName":"img:1","gpuTypeIds":["NVIDIA H100 80GB HBM3","NVIDIA L4"]}`},
		step{200, "GET", "/v1/pods/{id}", ""}, step{200, "GET", "/v1/pods", ""}, step{204, "DELETE", "/v1/pods/{id}", ""})
}

func (c *caller) graphql(ctx context.Context) error {
	doc, err := c.ask(ctx, 200, "POST", "/graphql", "key_evelyn",
		`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"d\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1, cloudType: ALL}) { id } }"}`)
	if err != nil {
		return err
	}
	data, _ := doc["data"].(map[string]any)
	pod, _ := data["podFindAndDeployOnDemand"].(map[string]any)
	id, _ := pod["id"].(string)
	if id == "" {
		return fmt.Errorf("nothing was made: %v", doc)
	}
	return c.steps(ctx, "key_evelyn",
		step{200, "POST", "/graphql", `{"query":"{ myself { pods { id } } gpuTypes { id } }"}`},
		step{200, "POST", "/graphql", `{"query":"mutation { podTerminate(input: {podId: \"` + id + `\"}) }"}`})
}

// runs begins jobs, fewer than the platform lets an endpoint cancel in a while.
func (c *caller) runs(ctx context.Context) error {
	if c.turns%10 != 1 {
		return nil
	}
	base := "/v2/" + c.endpoint
	return c.steps(ctx, "key_anna",
		step{200, "POST", base + "/run", `{"input":{"emulator":{"delay_ms":600000}}}`},
		step{200, "GET", base + "/status/{id}", ""}, step{200, "POST", base + "/cancel/{id}", "{}"}, step{200, "GET", base + "/health", ""})
}

// stream leaves a stream that does not end by itself.
func (c *caller) stream(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.data+"/v2/pods/"+c.pod+"/logs", http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer key_anna")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("stream: %s", res.Status)
	}
	return nil
}

func (c *caller) refusals(ctx context.Context) error {
	for _, s := range []step{
		{403, "POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA H200"}}`},
		{422, "POST", "/v2/pods", `{"name":7}`},
		{404, "GET", fmt.Sprintf("/v2/nothing-%d", c.turns), ""},
		{404, "GET", fmt.Sprintf("/v2/pods/none%d", c.turns), ""},
	} {
		if _, err := c.ask(ctx, s.want, s.method, s.target, "key_anna", s.body); err != nil {
			return err
		}
	}
	return nil
}

// keys makes a key at first, and gives it another secret in each turn.
func (c *caller) keys(ctx context.Context) error {
	target := "/admin/keys/rotate?org=acme&id=made&overlap=0s"
	if c.turns == 1 {
		target = "/admin/keys/create?org=acme&spec=" + url.QueryEscape(`{"id":"made","team":"research","roles":["operator"]}`)
	}
	made, err := c.operate(ctx, http.MethodPost, target)
	if err != nil {
		return err
	}
	var answer struct{ Secret string }
	if err := json.Unmarshal(made, &answer); err != nil {
		return err
	}
	_, err = c.ask(ctx, 200, "GET", "/v2/pods", answer.Secret, "")
	return err
}

// reload has the configuration read again, now and then after a change.
func (c *caller) reload(context.Context) error {
	if c.turns%50 != 1 {
		return nil
	}
	text := fmt.Sprintf("%s# %d\n", c.text, c.turns)
	if err := os.WriteFile(c.path, []byte(text), 0o600); err != nil {
		return err
	}
	return c.process.Process.Signal(syscall.SIGHUP)
}
