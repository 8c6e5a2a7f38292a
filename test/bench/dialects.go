package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
)

// ways is one intent in every dialect, the first being what the others are
// compared with.
type ways struct {
	name     string
	requests []way
}

// way is one intent in one dialect.
type way struct{ dialect, request string }

// podsThere is how many pods the lists of a measurement hold.
const podsThere = 20

// intents lists what is measured. id is a pod there is. Reads come first: every
// create makes the lists longer.
func intents(id string) (reads, creates []ways) {
	rest := func(method, target, body string) string {
		return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			method, target, key, len(body), body)
	}
	get := func(target string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + key + "\r\n\r\n"
	}
	graphql := func(query string) string { return rest("POST", "/graphql", encode(map[string]any{"query": query})) }
	note := strings.Repeat("x", 360)
	reads = []ways{
		{"read a pod", []way{
			{"v2", get("/v2/pods/" + id)},
			{"v1", get("/v1/pods/" + id)},
			{"GraphQL", graphql(`{ pod(input: {podId: "` + id + `"}) { id name desiredStatus costPerHr } }`)},
		}},
		{fmt.Sprintf("list %d pods", podsThere), []way{
			{"v2", get("/v2/pods")},
			{"v1", get("/v1/pods")},
			{"GraphQL", graphql(`{ myself { pods { id name desiredStatus costPerHr } } }`)},
		}},
	}
	creates = []ways{
		{"create a pod", []way{
			{"v2", requestOf("POST")},
			{"v1", rest("POST", "/v1/pods", encode(map[string]any{
				"name": "training-run", "imageName": "registry.example/team/trainer:2.4.1", "gpuTypeIds": []string{"NVIDIA L4"},
				"containerDiskInGb": 40, "volumeInGb": 0, "ports": []string{"8888/http", "22/tcp"}, "env": map[string]string{"STAGE": "bench", "NOTE": note},
			}))},
			{"GraphQL", graphql(`mutation { podFindAndDeployOnDemand(input: {name: "training-run", imageName: "registry.example/team/trainer:2.4.1",
					gpuTypeId: "NVIDIA L4", cloudType: SECURE, gpuCount: 1, containerDiskInGb: 40, volumeInGb: 0, ports: "8888/http,22/tcp",
					env: [{key: "STAGE", value: "bench"}, {key: "NOTE", value: "` + note + `"}]}) { id desiredStatus } }`)},
		}},
	}
	return reads, creates
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // texts, numbers and lists of them always encode
		panic(err)
	}
	return string(b)
}

// measureDialects compares the old interfaces with v2, in servers of their own:
// the lists must not hold what other measurements created.
func measureDialects(ctx context.Context, p plan) (err error) {
	f, err := startFleet(ctx)
	defer func() { err = errors.Join(err, f.stop()) }()
	if err != nil {
		return err
	}
	emulator, gateway := f.targets[0], f.targets[len(f.targets)-1]
	if err := load(ctx, emulator.addr, requestOf("POST"), podsThere-1, 1); err != nil {
		return err
	}
	made, _, err := once(ctx, emulator.addr, requestOf("POST"))
	if err != nil {
		return err
	}
	var pod struct{ ID string }
	if err := json.Unmarshal(made, &pod); err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	reads, creates := intents(pod.ID)
	for _, group := range [][]ways{reads, creates} {
		if err := measureWays(ctx, gateway, group, p); err != nil {
			return err
		}
	}
	return nil
}

// measureWays measures and reports intents, all their dialects interleaved.
func measureWays(ctx context.Context, s *process, group []ways, p plan) error {
	results, became := make(map[string]*result), make(map[string]string)
	each := func(do func(name string, w way) error) error {
		for _, g := range group {
			for _, w := range g.requests {
				if err := do(g.name+" "+w.dialect, w); err != nil {
					return fmt.Errorf("%s by %s: %w", g.name, w.dialect, err)
				}
			}
		}
		return nil
	}
	err := each(func(name string, w way) error {
		results[name] = new(result)
		if err := load(ctx, s.addr, w.request, p.requests/20, p.connections); err != nil { // warm up
			return err
		}
		var body []byte
		var err error
		if body, became[name], err = once(ctx, s.addr, w.request); err == nil && strings.Contains(string(body), `"errors"`) {
			err = fmt.Errorf("answered %s", body)
		}
		return err
	})
	if err != nil {
		return err
	}
	for range p.rounds {
		if err := each(func(name string, w way) error { return one(ctx, s, w.request, p, results[name]) }); err != nil {
			return err
		}
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, g := range group {
		_, _ = fmt.Fprintf(t, "%s\trequests/s\tratio\tCPU/request\tratio\tbecomes\t\n", g.name)
		base := results[g.name+" "+g.requests[0].dialect]
		for _, w := range g.requests {
			r := results[g.name+" "+w.dialect]
			_, _ = fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%v\t%.2f\t%s\t\n", w.dialect, r.perSecond(), r.perSecond()/base.perSecond(),
				r.cpuPerRequest(), float64(r.cpu)/float64(r.requests)/(float64(base.cpu)/float64(base.requests)), became[g.name+" "+w.dialect])
		}
		_, _ = fmt.Fprintln(t, "\t\t\t\t\t\t")
	}
	return t.Flush()
}

// once sends one request and returns the answer's body, and the v2 operations a
// translated one became.
func once(ctx context.Context, addr, request string) (body []byte, became string, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	if body, err = io.ReadAll(res.Body); err == nil && res.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("answered %d: %s", res.StatusCode, body)
	}
	return body, res.Header.Get("X-Tollgate-V2-Operation"), err
}
