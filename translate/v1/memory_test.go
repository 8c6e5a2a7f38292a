package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
)

// patchy is a store some of whose operations do not work: they run into their
// deadline when hang is set, and fail at once else.
type patchy struct {
	translate.Store
	get, find, addAll, hang bool
	calls                   []string
}

func (s *patchy) Get(ctx context.Context, key translate.Key) (json.RawMessage, bool, error) {
	if s.get {
		return nil, false, s.fail(ctx)
	}
	return s.Store.Get(ctx, key)
}

func (s *patchy) Find(ctx context.Context, account, kind string, ids []string) ([]string, error) {
	s.calls = append(s.calls, "find")
	if s.find {
		return nil, s.fail(ctx)
	}
	return s.Store.Find(ctx, account, kind, ids)
}

func (s *patchy) AddAll(ctx context.Context, account, kind string, values map[string]json.RawMessage, ttl time.Duration) error {
	s.calls = append(s.calls, "add all")
	if s.addAll {
		return s.fail(ctx)
	}
	return s.Store.AddAll(ctx, account, kind, values, ttl)
}

func (s *patchy) fail(ctx context.Context) error {
	if s.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("away")
}

// manyPods is a platform with n pods.
func manyPods(n int) constant {
	var pods []any
	for i := range n {
		pods = append(pods, merge(fixture("pod"), map[string]any{"id": fmt.Sprintf("p%d", i)}))
	}
	return constant{
		"listPods":     {Status: 200, Body: map[string]any{"pods": pods}},
		"listGpuTypes": {Status: 200, Body: fixture("gpus")},
	}
}

func listedPods(t *testing.T, store translate.Store, platform translate.Caller) result {
	t.Helper()
	api, err := New(DefaultConfig(), translate.Deps{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	out := api.Serve(t.Context(), "listPods", &translate.Incoming{Account: "acme"}, platform)
	return result{Outgoing: out, body: mustJSON(string(out.Body))}
}

// TestListPodsKeepsWhatItCannotRead: a pod whose note cannot be read is not
// taken for one that was never seen.
func TestListPodsKeepsWhatItCannotRead(t *testing.T) {
	store := &patchy{Store: storetest.NewMemoryStore(time.Now)}
	key := translate.Key{Account: "acme", Kind: translate.KindPod, ID: "p1"}
	const note = `{"templateId":"t1","injectedEnv":["A"]}`
	if err := store.Put(t.Context(), key, json.RawMessage(note), 0); err != nil {
		t.Fatal(err)
	}
	template := func(r result) string {
		pods, _ := r.body.([]any)
		return translate.Text(translate.ByID(pods, "p1"), "templateId")
	}
	store.find = true
	got := listedPods(t, store, manyPods(3))
	if got.Status != 200 || template(got) != "" {
		t.Errorf("while the memory is away: %d %s", got.Status, got.Body)
	}
	if lines := got.Header.Values("X-Legacy-Warning"); len(lines) != 1 || !strings.HasPrefix(lines[0], "memory: ") {
		t.Errorf("warnings %q, want one about the memory", lines)
	}
	store.find = false
	got = listedPods(t, store, manyPods(3))
	if template(got) != "t1" || len(got.Warnings) != 0 {
		t.Errorf("afterwards: template %q, warnings %q, want t1 and none", template(got), got.Warnings)
	}
	if raw, _, err := store.Get(t.Context(), key); string(raw) != note || err != nil {
		t.Errorf("the note is %s, %v, want it as it was", raw, err)
	}
	if raw, ok, err := store.Get(t.Context(), translate.Key{Account: "acme", Kind: translate.KindPod, ID: "p2"}); !ok || err != nil {
		t.Errorf("the note of a pod seen first is %s, %v", raw, err)
	}
}

// TestListPodsAsksTheMemoryOnce: however many pods there are, a memory that
// hangs costs one exchange.
func TestListPodsAsksTheMemoryOnce(t *testing.T) {
	tests := map[string]struct {
		store patchy
		calls string
	}{
		"reads hang":  {patchy{find: true, hang: true}, "find"},
		"writes hang": {patchy{addAll: true, hang: true}, "find, add all"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := tt.store
				store.Store = storetest.NewMemoryStore(time.Now)
				begin := time.Now()
				got := listedPods(t, &store, manyPods(46))
				if pods, _ := got.body.([]any); got.Status != 200 || len(pods) != 46 {
					t.Errorf("answer %d with %d pods", got.Status, len(pods))
				}
				if took := time.Since(begin); took != time.Second {
					t.Errorf("took %v, want 1s", took)
				}
				if calls := strings.Join(store.calls, ", "); calls != tt.calls {
					t.Errorf("asked the memory: %s, want %s", calls, tt.calls)
				}
				if len(got.Warnings) != 1 {
					t.Errorf("warnings %q, want one", got.Warnings)
				}
			})
		})
	}
}

// TestEndpointsKeepWhatCannotBeRead: a read of an endpoint renews its note, but
// not over one it could not read.
func TestEndpointsKeepWhatCannotBeRead(t *testing.T) {
	store := &patchy{Store: storetest.NewMemoryStore(time.Now), get: true}
	key := translate.Key{Account: "acme", Kind: translate.KindEndpoint, ID: "e1"}
	const note = `{"templateId":"t1","gpuTypeIds":["b","a"]}`
	if err := store.Put(t.Context(), key, json.RawMessage(note), 0); err != nil {
		t.Fatal(err)
	}
	g := newGate(t, DefaultConfig(), answer{op: "getEndpoint", status: 200, body: fixture("endpoint")})
	api, err := New(DefaultConfig(), translate.Deps{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	g.api = api
	got := g.do(t, "GET /v1/endpoints/e1", "")
	if got.Status != 200 || got.text("templateId") != "ept_e1" || len(got.Warnings) == 0 {
		t.Errorf("while the memory is away: %d, template %q, warnings %q", got.Status, got.text("templateId"), got.Warnings)
	}
	store.get = false
	if raw, _, err := store.Get(t.Context(), key); string(raw) != note || err != nil {
		t.Errorf("the note is %s, %v, want it as it was", raw, err)
	}
}

// A virtual template has a name of its own: an update of the template does not rename its endpoint.
func TestVirtualTemplateKeepsTheEndpointsName(t *testing.T) {
	e := answer{op: "getEndpoint", status: 200, body: fixture("endpoint")}
	g := newGate(t, DefaultConfig(), e, e, e, answer{op: "updateEndpoint", status: 200, body: fixture("endpoint")},
		answer{op: "listEndpoints", status: 200, body: map[string]any{"endpoints": []any{fixture("endpoint")}}},
		answer{op: "listTemplates", status: 200, body: map[string]any{"templates": []any{}}},
		answer{op: "listGpuTypes", status: 200, body: fixture("gpus")}, answer{op: "listEndpointReleases", status: 200, body: map[string]any{"endpointVersion": json.Number("1")}})
	got := g.do(t, "PATCH /v1/templates/ept_e1", `{"name":"3f9c2a"}`)
	if got.Status != 200 || got.text("name") != "3f9c2a" {
		t.Fatalf("answer %d %s, want 200 with the template's name", got.Status, got.Body)
	}
	want := map[string]any{"name": translate.Text(fixture("endpoint"), "name")} // checks access to the endpoint
	if sent := g.bodies("updateEndpoint"); len(sent) != 1 || !reflect.DeepEqual(sent[0], any(want)) {
		t.Errorf("the updates of the endpoint are %v, want %v", sent, want)
	}
	if got := g.do(t, "GET /v1/templates/ept_e1", ""); got.text("name") != "3f9c2a" {
		t.Errorf("the template reads back as %s", got.Body)
	}
	if got := g.do(t, "GET /v1/templates?includeEndpointBoundTemplates=true", ""); !strings.Contains(string(got.Body), `"name":"3f9c2a"`) {
		t.Errorf("the templates are listed as %s", got.Body)
	}
	if got := g.do(t, "GET /v1/endpoints/e1", ""); got.text("name") == "3f9c2a" || got.text("name") == "" {
		t.Errorf("the endpoint reads back as %s", got.Body)
	}
}

// Words in parameters that are not the platform's name neither become its name nor replace other members.
func TestWordsThatAreNotThePlatformsName(t *testing.T) {
	list := answer{op: "listTemplates", status: 200, body: map[string]any{"templates": []any{fixture("slsTemplate")}}}
	cfg := DefaultConfig()
	cfg.Legacy.Derived = "Acme"
	g := newGate(t, cfg, list, list)
	for _, query := range []string{"?includeServerlessTemplates=true", ""} {
		got := g.do(t, "GET /v1/templates"+query, "")
		if text := string(got.Body); got.Status != 200 || !strings.Contains(text, `"isServerless":true`) || !strings.Contains(text, `"isAcme":false`) {
			t.Errorf("%q: %d %s, want isServerless true and isAcme false", query, got.Status, text)
		}
	}
}
