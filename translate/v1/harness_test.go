package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a fake time: sleeping moves it.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

var dayZero = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	return ctx.Err()
}

// sent is one recorded v2 call.
type sent struct {
	op, id, query string
	body          any
	at            time.Duration // since the start
}

// answer is one scripted reply of the fake platform.
type answer struct {
	op, id string // id empty: any
	status int    // 0: no answer, the call is lost
	header http.Header
	body   any
}

// platform is a fake v2: it answers from a script, each entry once, and
// catalog reads from fixtures. A call nobody scripted is an error and noted.
type platform struct {
	clock *clock

	mu         sync.Mutex
	script     []answer
	defaults   map[string]any
	calls      []sent
	unexpected []string
}

func newPlatform(script ...answer) *platform {
	return &platform{clock: &clock{t: dayZero}, script: script, defaults: map[string]any{
		"listGpuTypes": fixture("gpus"), "listCpuTypes": fixture("cpus"),
		"listDataCenters": fixture("dataCenters"), "listEndpointReleases": fixture("releases"),
		"listTemplates": mustJSON(`{"templates":[]}`), "listNetworkVolumes": mustJSON(`{"networkVolumes":[]}`), "listRegistries": mustJSON(`{"registries":[]}`),
	}}
}

var errLost = fmt.Errorf("read: connection reset: %w", translate.ErrAmbiguous)

func (p *platform) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := sent{op: r.Operation, id: r.Params["id"], query: decoded(r.Query), body: copied(r.Body), at: p.clock.now().Sub(dayZero)}
	p.calls = append(p.calls, call)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.script, func(a answer) bool { return a.op == r.Operation && (a.id == "" || a.id == call.id) })
	if i < 0 {
		if body, ok := p.defaults[r.Operation]; ok {
			return &translate.Response{Status: 200, Header: http.Header{}, Body: copied(body)}, nil
		}
		p.unexpected = append(p.unexpected, r.Operation+" "+call.id)
		return nil, errors.New("unscripted call")
	}
	a := p.script[i]
	p.script = slices.Delete(p.script, i, i+1)
	if a.status == 0 && strings.HasPrefix(r.Operation, "create") {
		return nil, &translate.UnfinishedError{Noun: "pod"}
	}
	if a.status == 0 {
		return nil, errLost
	}
	header := a.header
	if header == nil {
		header = http.Header{}
	}
	out := &translate.Response{Status: a.status, Header: header, Body: copied(a.body)}
	if a.status == http.StatusPaymentRequired && translate.Text(a.body, "decision") != "" {
		out.Kind, out.Refused = "budget_exceeded", true // the platform's refusals have no decision
	}
	return out, nil
}

// ops lists the calls of the named operations by operation and id, in order.
func (p *platform) ops(names ...string) []string {
	var list []string
	for _, call := range p.calls {
		if len(names) == 0 || slices.Contains(names, call.op) {
			list = append(list, strings.TrimSpace(call.op+" "+call.id))
		}
	}
	return list
}

// bodies lists the bodies of one operation's calls.
func (p *platform) bodies(op string) []any {
	var list []any
	for _, call := range p.calls {
		if call.op == op {
			list = append(list, call.body)
		}
	}
	return list
}

func decoded(q url.Values) string {
	s, err := url.QueryUnescape(q.Encode())
	if err != nil {
		return q.Encode()
	}
	return s
}

// copied is a deep copy, so that nobody sees later changes.
func copied(v any) any {
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return mustJSON(string(raw))
}

func mustJSON(s string) any {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		panic(fmt.Sprintf("test JSON: %v in %s", err, s))
	}
	return v
}

// gate is an API over a fake platform.
type gate struct {
	*platform
	api   *API
	store translate.Store
}

func newGate(t *testing.T, cfg Config, script ...answer) *gate {
	t.Helper()
	p := newPlatform(script...)
	store := storetest.NewMemoryStore(p.clock.now)
	api, err := New(cfg, translate.Deps{Now: p.clock.now, Sleep: p.clock.sleep, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &gate{platform: p, api: api, store: store}
}

// remember writes a note before a test.
func (g *gate) remember(t *testing.T, kind, id, note string) {
	t.Helper()
	key := translate.Key{Account: "acme", Kind: kind, ID: id}
	if err := g.store.Put(t.Context(), key, json.RawMessage(note), 0); err != nil {
		t.Fatal(err)
	}
}

// result is a decoded answer.
type result struct {
	*translate.Outgoing
	body any
}

func (r result) text(path ...string) string { return translate.Text(r.body, path...) }

// do sends one v1 request, e.g. "POST /v1/pods", through the operations' own
// routes.
func (g *gate) do(t *testing.T, target, body string) result {
	t.Helper()
	method, rest, _ := strings.Cut(target, " ")
	u, err := url.Parse(rest)
	if err != nil {
		t.Fatal(err)
	}
	op, params := route(method, u.Path)
	if op == "" {
		t.Fatalf("no operation for %s", target)
	}
	in := &translate.Incoming{Params: params, Query: u.Query(), Account: "acme"}
	if strings.TrimSpace(body) != "" {
		in.HasBody, in.Body = true, mustJSON(body)
	}
	out := g.api.Serve(t.Context(), op, in, g.platform)
	for _, call := range g.unexpected {
		t.Errorf("%s made a call nobody expected: %s", target, call)
	}
	res := result{Outgoing: out}
	if out.ContentType == "application/json" {
		res.body = mustJSON(string(out.Body))
		if want, _ := reference(res.body); op != "getOpenAPI" && string(out.Body) != want {
			t.Errorf("%s was answered\n%s\nwhich encoding/json writes\n%s", target, out.Body, want)
		}
	}
	return res
}

func route(method, path string) (string, map[string]string) {
	have := strings.Split(path, "/")
	for _, op := range Operations() {
		want := strings.Split(op.Path, "/")
		if op.Method != method || len(want) != len(have) {
			continue
		}
		params, ok := map[string]string{}, true
		for i, part := range want {
			if name, isParam := strings.CutPrefix(part, "{"); isParam {
				params[strings.TrimSuffix(name, "}")] = have[i]
			} else if part != have[i] {
				ok = false
			}
		}
		if ok {
			return op.ID, params
		}
	}
	return "", nil
}

func indent(v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return buf.String()
}

// merge lays patch over base as RFC 7396 does, without changing either.
func merge(base, patch any) any {
	over, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	maps.Copy(out, translate.Members(base))
	for k, v := range over {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = merge(out[k], v)
	}
	return out
}
