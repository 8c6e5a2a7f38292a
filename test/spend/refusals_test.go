package spend

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	limits "github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// refusing is a Redis behind a relay, and an operator's client of it.
type refusing struct {
	t        *testing.T
	dir      string
	server   *redistest.Server
	relay    *redistest.Relay
	operator redistest.Conn
	// user is the user and the password in the gateway's URL.
	user string
}

// do sends commands of an operator, each written as on a command line.
func (r *refusing) do(commands ...string) {
	r.t.Helper()
	for _, command := range commands {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, strings.Trim(word, "'"))
		}
		if err := r.operator.Do(r.t.Context(), args...).Err(); err != nil {
			r.t.Fatalf("%s: %v", command, err)
		}
	}
}

// disconnect closes the gateway's connections.
func (r *refusing) disconnect() { r.relay.Switch(r.server.Addr()) }

// replyAlways has every command answered with an error.
func (r *refusing) replyAlways(text string) {
	fake := miniredis.RunT(r.t)
	fake.SetError(text)
	r.relay.Switch(fake.Addr())
}

// TestRedisRefuses has Redis refuse the gateway in every way that is known, at the start and at run
// time. No task panics, reads and what lowers cost are served, what raises cost is not, and all is as before
// once Redis accepts the gateway again.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		refuse func(r *refusing)
		mend   func(r *refusing)
	}{
		{
			"WRONGPASS", func(r *refusing) { r.do("ACL SETUSER tollgate resetpass >another"); r.disconnect() },
			func(r *refusing) { r.do("ACL SETUSER tollgate >right") },
		},
		{
			"the user is deleted", func(r *refusing) { r.do("ACL DELUSER tollgate") },
			func(r *refusing) { r.do("ACL SETUSER tollgate on >right ~* &* +@all") },
		},
		{
			"NOAUTH", (*refusing).unauthenticated,
			func(r *refusing) { r.do("CONFIG SET requirepass ''") },
		},
		{
			"NOPERM", func(r *refusing) { r.do("ACL SETUSER tollgate -@all") },
			func(r *refusing) { r.do("ACL SETUSER tollgate +@all") },
		},
		{
			"OOM", func(r *refusing) { r.do("CONFIG SET maxmemory 1") },
			func(r *refusing) { r.do("CONFIG SET maxmemory 0") },
		},
		{
			"maxclients", func(r *refusing) { r.do("CONFIG SET maxclients 1"); r.disconnect() },
			func(r *refusing) { r.do("CONFIG SET maxclients 1000") },
		},
		{
			"READONLY", func(r *refusing) { r.do("REPLICAOF 127.0.0.1 1") },
			func(r *refusing) { r.do("REPLICAOF NO ONE") },
		},
		{"MISCONF", (*refusing).breakSaving, func(r *refusing) { r.do("CONFIG SET stop-writes-on-bgsave-error no") }},
		{
			"the database is out of range", func(r *refusing) { r.relay.Switch(redistest.Run(r.t, "--databases", "1").Addr()) },
			(*refusing).disconnect,
		},
		{"LOADING", func(r *refusing) { r.replyAlways("LOADING Redis is loading the dataset in memory") }, (*refusing).disconnect},
		{"CLUSTERDOWN", func(r *refusing) { r.replyAlways("CLUSTERDOWN The cluster is down") }, (*refusing).disconnect},
		{"TRYAGAIN", func(r *refusing) { r.replyAlways("TRYAGAIN Multiple keys request during rehashing of slot") }, (*refusing).disconnect},
		{"a cut in the handshake", func(r *refusing) { r.relay.Switch("") }, (*refusing).disconnect},
	} {
		for _, when := range []string{"start", "run"} {
			t.Run(tt.name+"/"+when, func(t *testing.T) {
				t.Parallel()
				r := newRefusing(t)
				if tt.name == "NOAUTH" {
					r.user = "" // the default user, which has no password
				}
				if when == "start" {
					tt.refuse(r)
				}
				g := r.gateway()
				if when == "run" {
					g.until(http.StatusCreated)
					tt.refuse(r)
				}
				g.without()
				tt.mend(r)
				g.until(http.StatusCreated)
				if strings.Contains(g.log.String(), "panic") {
					t.Errorf("a task panicked: %s", g.log)
				}
			})
		}
	}
}

// The password of the Redis user is replaced as docs/procedures.md says: of two gateways one
// serves at any time, and none of their callers is refused.
func TestPasswordOfRedisIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRefusing(t)
	a, b := r.gateway(), r.gateway()
	created := func(when string, gateways ...*besieged) {
		t.Helper()
		for range 10 {
			for i, g := range gateways {
				if status := g.create(); status != http.StatusCreated {
					t.Errorf("%s, gateway %d: a create is answered %d", when, i, status)
				}
			}
		}
	}
	a.until(http.StatusCreated)
	b.until(http.StatusCreated)
	r.do("ACL SETUSER tollgate >new")
	created("with two passwords", a, b)
	r.user = "tollgate:new@"
	for i, g := range []*besieged{a, b} {
		other := []*besieged{b, a}[i]
		g.end()
		created("while the other restarts", other)
		*g = *r.gateway()
		g.until(http.StatusCreated)
		created("with another restarted", other, g)
	}
	r.do("ACL SETUSER tollgate <right")
	created("without the old password", a, b)
	r.user = "tollgate:right@"
	late := r.gateway()
	if late.until(http.StatusServiceUnavailable); !strings.Contains(late.log.String(), "WRONGPASS") {
		t.Errorf("the log does not say why the old password fails: %s", late.log)
	}
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	r := &refusing{t: t, dir: t.TempDir(), user: "tollgate:right@"}
	r.server = redistest.Run(t, "--enable-protected-configs", "yes", "--user", "tollgate", "on", ">right", "~*", "&*", "+@all")
	r.operator = redistest.Client(t, r.server.Addr())
	r.relay = redistest.NewRelay(t, r.server.Addr())
	return r
}

// unauthenticated has the server ask for the password of the default user, who had none.
func (r *refusing) unauthenticated() {
	r.do("CONFIG SET requirepass secret")
	r.disconnect()
}

// breakSaving has a snapshot fail, after which Redis refuses writes.
func (r *refusing) breakSaving() {
	gone := filepath.Join(r.dir, "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.do("CONFIG SET dir " + gone)
	if err := os.Remove(gone); err != nil {
		r.t.Fatal(err)
	}
	if err := r.operator.ConfigSet(r.t.Context(), "save", "3600 1").Err(); err != nil {
		r.t.Fatal(err)
	}
	r.do("BGSAVE")
	world.Until(r.t, "the snapshot has failed", func() bool {
		info, err := r.operator.Info(r.t.Context(), "persistence").Result()
		return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
	})
}

// besieged is a gateway whose Redis refuses it, with the pods of its organisation.
type besieged struct {
	t        *testing.T
	platform *platform.Instance
	site     *site
	url      string
	log      *world.Buffer
	gateway  *gateway.Gateway
	made     int
	end      func()
}

// gateway starts the gateway.
func (r *refusing) gateway() *besieged {
	t := r.t
	t.Helper()
	client, err := limits.Open(fmt.Sprintf("redis://%s%s/3", r.user, r.relay.Addr()), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	b := &besieged{t: t, log: new(world.Buffer)}
	b.platform = platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential, Exempt: true, Balance: 1e9}))
	b.site = &site{t: t, client: &http.Client{Transport: &http.Transport{}, Timeout: 2 * time.Minute}}
	t.Cleanup(b.site.client.CloseIdleConnections)
	cfg := world.Configuration(t, fmt.Sprintf("platform: {base_url: %q}\nredis: {embedded: true}\nlimits: {recovery: 1s}\npolicies: {deadline: 10s}\n", b.platform.URL)+
		"orgs:\n  - id: acme\n    credential: {env: ACME}\n    budget: {gpus: 100}\n"+
		"    keys: [{id: ann, sha256: SHA256(key_of_ann_1), roles: [admin], limits: {minute: 100000}}]\n", map[string]string{"ACME": credential})
	data := world.Listen(t)
	b.url = "http://" + data.Addr().String()
	b.gateway = world.Gateway(t, cfg, gateway.Deps{Redis: client, Data: data, Admin: world.Listen(t), Logger: slog.New(slog.NewTextHandler(b.log, nil))})
	b.end = world.Run(t, b.gateway)
	return b
}

// ask makes a call and returns its status.
func (b *besieged) ask(method, path, body string) int {
	b.t.Helper()
	a, err := b.site.call(b.url, "key_of_ann_1", method, path, body)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
	}
	return a.status
}

// create asks for a pod.
func (b *besieged) create() int {
	b.t.Helper()
	b.made++
	return b.ask(http.MethodPost, pods, fmt.Sprintf(`{"name":"pod-%d","image":"img:1","disk":20,"gpu":{"id":"NVIDIA L4"}}`, b.made))
}

// until waits for a create to have a status.
func (b *besieged) until(status int) {
	b.t.Helper()
	world.Until(b.t, fmt.Sprintf("a create is answered %d", status), func() bool { return b.create() == status })
}

// without holds what callers get while Redis refuses the gateway.
func (b *besieged) without() {
	b.t.Helper()
	var made struct{ ID string }
	a, err := b.site.call(b.platform.URL, credential, http.MethodPost, pods, `{"name":"outside","image":"img:1","disk":20,"gpu":{"id":"NVIDIA L4"}}`)
	if err == nil {
		err = json.Unmarshal([]byte(a.body), &made)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.until(http.StatusServiceUnavailable)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, pods, "", http.StatusOK},
		{http.MethodPost, pods + "/" + made.ID + "/action", `{"action":"stop"}`, http.StatusOK},
		{http.MethodDelete, pods + "/" + made.ID, "", http.StatusNoContent},
	} {
		if got := b.ask(c.method, c.path, c.body); got != c.want {
			b.t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	w := httptest.NewRecorder()
	b.gateway.AdminHandler().ServeHTTP(w, httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, "/readyz", http.NoBody))
	if w.Code != http.StatusOK {
		b.t.Errorf("readyz: %d %s, want 200", w.Code, w.Body)
	}
}
