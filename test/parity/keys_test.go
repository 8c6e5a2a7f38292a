package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/world"
)

// beside opens another gateway on the same store and platform.
func (d *door) beside(t *testing.T) *door {
	t.Helper()
	b := *d
	b.logs = new(world.Buffer)
	b.open(t)
	return &b
}

// refresh lets a gateway look for changes of keys, as it does every second.
func (d *door) refresh(t *testing.T) {
	t.Helper()
	if err := d.gateway.RefreshKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// operate asks the admin API about keys and returns the status and the body.
func (d *door) operate(t *testing.T, method, action string, q url.Values) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	d.gateway.AdminHandler().ServeHTTP(w, httptest.NewRequest(method, "http://127.0.0.1:8081/admin/keys"+action+"?"+q.Encode(), nil))
	return w.Code, w.Body.String()
}

// make makes a key of acme and returns its secret.
func (d *door) make(t *testing.T, spec string) (secret string) {
	t.Helper()
	status, body := d.operate(t, "POST", "/create", url.Values{"org": {"acme"}, "spec": {spec}})
	if status != http.StatusCreated {
		t.Fatalf("create %s: %d %s, want 201", spec, status, body)
	}
	return fmt.Sprint(field(t, body, "secret"))
}

// record returns a key as the admin API shows it.
func (d *door) record(t *testing.T, id string) settings.KeyRecord {
	t.Helper()
	status, body := d.operate(t, "GET", "", url.Values{"org": {"acme"}})
	var answer struct{ Keys []settings.KeyRecord }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("list: %d %s, %v", status, body, err)
	}
	for _, k := range answer.Keys {
		if k.ID == id {
			return k
		}
	}
	t.Fatalf("no key %s is listed: %s", id, body)
	return settings.KeyRecord{}
}

// expect asks for pods with a key.
func (d *door) expect(t *testing.T, what, key string, want int) {
	t.Helper()
	if a := d.ask(t, request("GET", "/v2/pods", key, "")); a.Status != want {
		t.Errorf("%s, through %s: %d %s, want %d", what, d.name, a.Status, a.Body, want)
	}
}

// A key lives and ends on two gateways: at once where that is done, on the other with
// its next look at the store. Its streams end with it.
func TestKeysOfTwoGateways(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, a *door) {
		b := a.beside(t)
		a.refresh(t)
		b.refresh(t)
		first := a.make(t, `{"id":"ci","team":"research","roles":["operator"],"owner":"ann@acme.test"}`)
		a.expect(t, "made here", first, 200)
		b.expect(t, "made elsewhere, before the look", first, 401)
		b.refresh(t)
		b.expect(t, "made elsewhere", first, 200)
		created := b.ask(t, request("POST", "/v2/pods", first, pod4090))
		if created.Status != 201 {
			t.Fatalf("create: %d %s", created.Status, created.Body)
		}

		status, body := b.operate(t, "POST", "/rotate", url.Values{"org": {"acme"}, "id": {"ci"}, "overlap": {"1m"}})
		if status != 200 {
			t.Fatalf("rotate: %d %s", status, body)
		}
		second := fmt.Sprint(field(t, body, "secret"))
		a.refresh(t)
		for _, d := range []*door{a, b} {
			d.expect(t, "the old secret during the overlap", first, 200)
			d.expect(t, "the new secret", second, 200)
		}
		a.advance(time.Minute)
		for _, d := range []*door{a, b} {
			d.expect(t, "the old secret after the overlap", first, 401)
			d.expect(t, "the new secret after the overlap", second, 200)
		}

		var streams []<-chan string
		if a.name == "http" { // through the other, a stream is Envoy's own
			for _, d := range []*door{a, b} {
				lines, stop := d.stream(t, "/v2/pods/"+fmt.Sprint(field(t, created.Body, "id"))+"/logs", second)
				defer stop()
				<-lines // it flows
				streams = append(streams, lines)
			}
		}
		if status, body := a.operate(t, "POST", "/revoke", url.Values{"org": {"acme"}, "id": {"ci"}}); status != 204 {
			t.Fatalf("revoke: %d %s", status, body)
		}
		a.expect(t, "revoked here", second, 401)
		b.refresh(t)
		b.expect(t, "revoked elsewhere", second, 401)
		for _, lines := range streams {
			for range lines { // until it is cut; without that, until the test times out
			}
		}
		if k := b.record(t, "ci"); k.State != "revoked" || k.RevokedBy != "unauthenticated" || k.By != "unauthenticated" || k.Owner != "ann@acme.test" || k.Revision != 3 {
			t.Errorf("record = %+v, want a key that was revoked by an operator who was not signed in", k)
		}
		for _, log := range []string{a.logs.String(), b.logs.String()} {
			if strings.Contains(log, first) || strings.Contains(log, second) {
				t.Error("a log has a secret")
			}
		}
		if text, err := a.redis.Get("tollgate:keys:{acme}:ci"); err != nil || strings.Contains(text, "tg_") {
			t.Errorf("the store has no record, or a secret: %s (%v)", text, err)
		}
		for _, id := range a.redis.Keys() {
			if !strings.HasPrefix(id, "tollgate:") {
				t.Errorf("the store has %s", id)
			}
		}
	})
}

// Bounds of its own hold for a key made at run time as for one of the file.
func TestKeysHaveBoundsOfTheirOwn(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		limited := d.make(t, `{"id":"limited","team":"platform","limits":{"minute":2}}`)
		for i, want := range []int{200, 200, 429} {
			d.expect(t, fmt.Sprintf("call %d of two a minute", i+1), limited, want)
		}
		poor := d.make(t, `{"id":"poor","team":"platform","budget":{"per_hour":0.10}}`)
		if a := d.ask(t, request("POST", "/v2/pods", poor, pod4090)); a.Status != 402 {
			t.Errorf("beyond the key's budget: %d %s, want 402", a.Status, a.Body)
		}
		away := d.make(t, `{"id":"away","team":"platform","addresses":["10.0.0.0/8"]}`)
		d.expect(t, "from another address", away, 401)
		viewer := d.make(t, `{"id":"viewer","team":"platform","roles":["viewer"]}`)
		if a := d.ask(t, request("POST", "/v2/pods", viewer, pod4090)); a.Status != 403 {
			t.Errorf("a viewer creates a pod: %d %s, want 403", a.Status, a.Body)
		}
		for spec, want := range map[string]int{`"labelled","labels":["project"]`: 422, `"plain","labels":[]`: 422, `"free"`: 201} {
			key := d.make(t, `{"team":"platform","id":`+spec+`}`)
			if a := d.ask(t, request("POST", "/v2/pods", key, pod4090, "X-Tollgate-Labels: cost_center=1")); a.Status != want {
				t.Errorf("key %s sets cost_center: %d %s, want %d", spec, a.Status, a.Body, want)
			}
		}
		short := d.make(t, fmt.Sprintf(`{"id":"short","team":"platform","expires":%q}`, start.Add(time.Hour).Format(time.RFC3339)))
		d.expect(t, "before it expires", short, 200)
		d.advance(time.Hour)
		d.expect(t, "when it expires", short, 401)
		if got := d.record(t, "short").State; got != "expired" {
			t.Errorf("state = %q, want expired", got)
		}
	}, labelled(someLabels))
}

// Faults of a key are told when it is made, or else when it is listed.
func TestKeyConflicts(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	d.make(t, `{"id":"ci","team":"research"}`)
	digest := func(key string) string { return identity.DigestOf(key).String() }
	for name, tc := range map[string]struct {
		org, spec string
		want      int
	}{
		"an id of the file":              {"acme", `{"id":"key_research"}`, 409},
		"an id made before":              {"acme", `{"id":"ci"}`, 409},
		"a secret of the file":           {"acme", `{"id":"x","sha256":"` + digest("key_tiny") + `"}`, 409},
		"a secret of another":            {"acme", `{"id":"x","sha256":"` + digest("key_globex") + `"}`, 409},
		"a digest of zeros":              {"acme", `{"id":"x","sha256":"` + strings.Repeat("0", 64) + `"}`, 422},
		"a digest of zeros, listed":      {"acme", `{"id":"x","digests":[{"sha256":"` + strings.Repeat("0", 64) + `"}]}`, 422},
		"an organisation there is not":   {"nowhere", `{"id":"x"}`, 404},
		"a team there is not":            {"acme", `{"id":"x","team":"nowhere"}`, 409},
		"a lead without a team":          {"acme", `{"id":"x","roles":["lead"]}`, 422},
		"a role there is not":            {"acme", `{"id":"x","roles":["root"]}`, 422},
		"an end in the past":             {"acme", `{"id":"x","expires":"2020-01-01T00:00:00Z"}`, 422},
		"a quota below zero":             {"acme", `{"id":"x","limits":{"minute":-1}}`, 422},
		"a member there is not":          {"acme", `{"id":"x","admin":true}`, 422},
		"a former team":                  {"acme", `{"id":"x","team":"research","moved_from":"tiny"}`, 422},
		"a member twice":                 {"acme", `{"id":"x","id":"y"}`, 422},
		"an address with too much":       {"acme", `{"id":"x","addresses":["10.1.2.3/8"]}`, 422},
		"an owner who steers a terminal": {"acme", `{"id":"x","owner":"\u001b[2J"}`, 422},
		"an id that is a path":           {"acme", `{"id":"a/b"}`, 422},
		"no id":                          {"acme", `{}`, 422},
		"nothing":                        {"acme", ``, 400},
		"two documents":                  {"acme", "{\"id\":\"x\"}\n---\n{\"id\":\"y\"}", 422},
	} {
		if status, body := d.operate(t, "POST", "/create", url.Values{"org": {tc.org}, "spec": {tc.spec}}); status != tc.want {
			t.Errorf("%s: %d %s, want %d", name, status, body, tc.want)
		}
	}
	for action, more := range map[string]url.Values{"/rotate": {"overlap": {"0s"}}, "/revoke": {}} {
		for id, want := range map[string]int{"key_research": 409, "nowhere": 404} {
			more["org"], more["id"] = []string{"acme"}, []string{id}
			if status, body := d.operate(t, "POST", action, more); status != want {
				t.Errorf("%s of %s: %d %s, want %d", action, id, status, body, want)
			}
		}
	}
}

// The file wins: a key made before gives way to one of the same id or secret, and
// comes back when that goes.
func TestTheFileWins(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	secret := d.make(t, `{"id":"ci","team":"platform"}`)
	for name, change := range map[string]struct {
		change func(k *settings.Key)
		state  string
		file   int // what the file's key is answered with the made one's secret
	}{
		"id":     {func(k *settings.Key) { k.ID, k.Digest = "ci", identity.DigestOf("the_file_has_it") }, "not in force: the configuration has a key with this id", 401},
		"secret": {func(k *settings.Key) { k.ID, k.Digest = "other", identity.DigestOf(secret) }, "not in force: another key has the same secret", 200},
	} {
		next := load(t, d.text, d.upstream)
		k := next.Orgs[0].Keys[1]
		change.change(&k)
		next.Orgs[0].Keys = append(next.Orgs[0].Keys, k)
		if err := d.gateway.Swap(next); err != nil {
			t.Fatal(err)
		}
		d.expect(t, "the made key's secret, "+name, secret, change.file)
		if got := d.record(t, "ci").State; got != change.state {
			t.Errorf("%s: state = %q, want %q", name, got, change.state)
		}
		if err := d.gateway.Swap(load(t, d.text, d.upstream)); err != nil {
			t.Fatal(err)
		}
		d.expect(t, "without the file's", secret, 200)
	}
}

// Gateways write back the records that they know and the store has lost: a key stays in force, and
// a revoked one revoked, although the store was emptied or went back in time. Keys that no gateway
// knows any more are gone.
func TestTheStoreOfKeysForgets(t *testing.T) {
	t.Parallel()
	a := openDoor(t, "http")
	kept, gone := a.make(t, `{"id":"kept","team":"platform"}`), a.make(t, `{"id":"gone","team":"platform"}`)
	stored := make(map[string]string)
	for _, key := range []string{"tollgate:keys:{acme}:gone", "tollgate:keys:{acme}#"} {
		var err error
		if stored[key], err = a.redis.Get(key); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	if status, body := a.operate(t, "POST", "/revoke", url.Values{"org": {"acme"}, "id": {"gone"}}); status != 204 {
		t.Fatalf("revoke: %d %s", status, body)
	}
	a.refresh(t)
	for name, lose := range map[string]func(){
		"emptied": a.forget,
		"back in time": func() {
			for key, value := range stored {
				_ = a.redis.Set(key, value)
			}
		},
	} {
		lose()
		a.refresh(t)
		b := a.beside(t)
		b.refresh(t)
		for _, d := range []*door{a, b} {
			d.expect(t, name+": a key in force", kept, 200)
			d.expect(t, name+": a revoked key", gone, 401)
		}
	}
	if !strings.Contains(a.logs.String(), `"ids":["gone","kept"]`) {
		t.Error("the log has no line about what was written back")
	}
	a.forget()
	c := a.beside(t) // the only one left after a restart of all
	c.refresh(t)
	c.expect(t, "a key that is lost", kept, 401)
}

// While the store is away the keys known stay in force, and none can be changed. A
// gateway that has never read it calls no key unknown.
func TestTheStoreOfKeysIsAway(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, a *door) {
		secret := a.make(t, `{"id":"ci","team":"platform"}`)
		a.expect(t, "before", secret, 200)
		a.redis.SetError("LOADING for a while")
		if err := a.gateway.RefreshKeys(t.Context()); err == nil {
			t.Error("RefreshKeys: no error")
		}
		a.expect(t, "known", secret, 200)
		a.expect(t, "unknown", "key_nowhere", 401)
		for action, q := range map[string]url.Values{"/create": {"spec": {`{"id":"x"}`}}, "/rotate": {"id": {"ci"}, "overlap": {"0s"}}, "/revoke": {"id": {"ci"}}} {
			q.Set("org", "acme")
			if status, body := a.operate(t, "POST", action, q); status != 503 {
				t.Errorf("%s: %d %s, want 503", action, status, body)
			}
		}
		b := a.beside(t)
		_ = b.gateway.RefreshKeys(t.Context())
		b.expect(t, "a gateway that has read nothing, a key of the file", "key_platform", 200)
		b.expect(t, "a gateway that has read nothing", secret, 503)
		a.redis.SetError("")
		b.refresh(t)
		b.expect(t, "a gateway that has read now", secret, 200)
		b.expect(t, "a gateway that has read now, unknown", "key_nowhere", 401)
	})
}

// The last use of a key is kept, and written once a minute at most.
func TestLastUseOfKeys(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		secret := d.make(t, `{"id":"ci","team":"platform"}`)
		if got := d.record(t, "ci").Used; !got.IsZero() {
			t.Errorf("used %v, want never", got)
		}
		for _, step := range []struct {
			after, want time.Duration
		}{{0, 0}, {59 * time.Second, 0}, {time.Second, time.Minute}, {30 * time.Second, time.Minute}} {
			d.advance(step.after)
			d.expect(t, "used", secret, 200)
			d.refresh(t)
			want := start.Add(step.want)
			if got, stored := d.record(t, "ci").Used, d.redis.HGet("tollgate:keys:{acme}#used", "ci"); !got.Equal(want) || stored != fmt.Sprint(want.Unix()) {
				t.Errorf("after %v: used %v, stored %s, want %v", step.after, got, stored, want)
			}
		}
	})
}
