package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// lossy stands before a platform and loses the answers of creates.
type lossy struct {
	// lose answers a create in the platform's place.
	lose func(w http.ResponseWriter)
	// commit says after how many looks the create is carried out, 0 for at once
	// and less for never.
	commit int

	mu      sync.Mutex // guards the fields below
	pending *http.Request
	body    []byte
	looks   int
	creates int
}

// plain answers with a status that is no problem document.
func plain(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, "<html>", status) }
}

// said answers with a status as the platform's own problem document.
func said(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"title":%q,"status":%d,"detail":"not now"}`, http.StatusText(status), status)
	}
}

// cut closes the connection without an answer.
func cut(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// between puts l between a door's gateway and its platform. Creates are POSTs on a
// collection, looks the GETs of it that follow.
func (l *lossy) between(t *testing.T) option {
	t.Helper()
	return inFront(t, func(w http.ResponseWriter, r *http.Request, platform http.Handler) {
		if l.intercept(w, r, platform) {
			platform.ServeHTTP(w, r)
		}
	})
}

// inFront serves a door's gateway in place of its platform, which handle can pass requests on to.
func inFront(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, platform http.Handler)) option {
	t.Helper()
	return func(d *door) {
		target, err := url.Parse(d.platform.URL)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		platform := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
		}}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, platform) }))
		t.Cleanup(func() {
			s.Close()
			transport.CloseIdleConnections()
		})
		d.upstream = s.URL
	}
}

// intercept reports whether a request goes on to the platform.
func (l *lossy) intercept(w http.ResponseWriter, r *http.Request, proxy http.Handler) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r.Method == http.MethodPost && (strings.Count(r.URL.Path, "/") == 2 || r.URL.Path == "/v2/account/secrets") && l.lose != nil:
		l.creates++
		l.body, _ = io.ReadAll(r.Body)
		l.pending, l.looks = r, 0
		l.carryOut(proxy)
		l.lose(w)
		return false
	case l.pending != nil && r.Method == http.MethodGet && r.URL.Path == l.pending.URL.Path:
		l.looks++
		l.carryOut(proxy)
	}
	return true
}

// carryOut makes the platform carry out the pending create when it is time.
func (l *lossy) carryOut(proxy http.Handler) {
	if l.commit < 0 || l.looks < l.commit {
		return
	}
	r := l.pending.Clone(context.WithoutCancel(l.pending.Context()))
	r.Body, l.pending = io.NopCloser(bytes.NewReader(l.body)), nil
	proxy.ServeHTTP(httptest.NewRecorder(), r)
}

// maker is a create; path is empty for GraphQL.
type maker struct{ operation, path, body string }

// request writes the create down. template is the id of a serverless template.
func (m maker) request(template string) string {
	body := strings.ReplaceAll(m.body, "TEMPLATE", template)
	if m.path == "" {
		return strings.Replace(graphql(body), "key_research", "key_platform", 1)
	}
	return request("POST", m.path, "key_platform", body)
}

// makers are the creates of all dialects.
var makers = map[string]maker{
	"v1 pod":      {"createPod", "/v1/pods", `{"name":"n","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`},
	"v1 endpoint": {"createEndpoint", "/v1/endpoints", `{"name":"n","templateId":"TEMPLATE","gpuTypeIds":["NVIDIA L4"]}`},
	"v1 template": {"createTemplate", "/v1/templates", `{"name":"n","imageName":"img:1"}`},
	"v1 volume":   {"createNetworkVolume", "/v1/networkvolumes", `{"name":"n","size":20,"dataCenterId":"EU-RO-1"}`},
	"v1 registry": {"createRegistry", "/v1/containerregistryauth", `{"name":"n","username":"u","password":"p"}`},

	"v2 pod":      {"createPod", "/v2/pods", `{"name":"n","image":"img:1","gpu":{"id":"NVIDIA L4"}}`},
	"v2 sandbox":  {"createSandbox", "/v2/sandboxes", `{"name":"n","imageName":"img:1"}`},
	"v2 endpoint": {"createEndpoint", "/v2/serverless", `{"name":"n","image":"img:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]},"workers":{"min":0,"max":1}}`},
	"v2 template": {"createTemplate", "/v2/templates", `{"name":"n","image":"img:1"}`},
	"v2 volume":   {"createNetworkVolume", "/v2/network-volumes", `{"name":"n","size":20,"dataCenter":"EU-RO-1"}`},
	"v2 registry": {"createRegistry", "/v2/registries", `{"name":"n","username":"u","password":"p"}`},
	"v2 secret":   {"createSecret", "/v2/account/secrets", `{"name":"n","value":"a value"}`},

	"graphql pod":      {"createPod", "", `mutation { podFindAndDeployOnDemand(input: {name: "n", gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`},
	"graphql endpoint": {"createEndpoint", "", `mutation { saveEndpoint(input: {name: "n", templateId: "TEMPLATE", gpuIds: "ADA_24"}) { id } }`},
	"graphql template": {"createTemplate", "", `mutation { saveTemplate(input: {name: "n", imageName: "img:1", dockerArgs: "", containerDiskInGb: 10, volumeInGb: 0, env: []}) { id } }`},
	"graphql volume":   {"createNetworkVolume", "", `mutation { createNetworkVolume(input: {name: "n", size: 20, dataCenterId: "EU-RO-1"}) { id } }`},
	"graphql registry": {"createRegistry", "", `mutation { saveRegistryAuth(input: {name: "n", username: "u", password: "p"}) { id } }`},
}

// open opens a door on a platform that has a serverless template.
func (l *lossy) open(t *testing.T, name string, m maker, opts ...option) (d *door, ask func() answer) {
	t.Helper()
	unpriced := func(d *door) {
		d.text = strings.Replace(d.text, "      - policy: price_ceiling\n        params: {max_usd_per_hour: 40}\n", "", 1)
	}
	d = openDoor(t, name, append(opts, unpriced, l.between(t))...)
	id, _ := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"img:1","serverless":true}`)["id"].(string)
	return d, func() answer { return d.ask(t, m.request(id)) }
}

// made returns the ids that the platform lists for a create operation.
func (d *door) made(t *testing.T, operation string) []string {
	t.Helper()
	path := map[string]string{
		"createPod": "pods", "createEndpoint": "serverless", "createTemplate": "templates",
		"createNetworkVolume": "network-volumes", "createRegistry": "registries", "createSecret": "account/secrets", "createSandbox": "sandboxes",
	}[operation]
	var ids []string
	for _, list := range d.asPlatform(t, "GET", "/v2/"+path, "") {
		items, _ := list.([]any)
		for _, it := range items {
			m, _ := it.(map[string]any)
			if id, _ := m["id"].(string); m["name"] == "n" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// answeredID returns the id in an answer of either dialect, "" for a refusal.
func answeredID(a answer) string {
	var v any
	if json.Unmarshal([]byte(a.Body), &v) != nil {
		return ""
	}
	m, _ := v.(map[string]any)
	if data, ok := m["data"].(map[string]any); ok {
		for _, field := range data {
			m, _ = field.(map[string]any)
		}
	}
	id, _ := m["id"].(string)
	return id
}

// unfinishedAnswer reports an answer that says what may have happened.
func unfinishedAnswer(a answer) bool {
	return strings.Contains(a.Body, "may have been created") && strings.Contains(a.Body, "504") && answeredID(a) == ""
}

// TestLostCreatesAreFound: after each end of a create that leaves its outcome unknown, the
// resource is found, and there is no second one.
func TestLostCreatesAreFound(t *testing.T) {
	t.Parallel()
	ends := map[string]func(http.ResponseWriter){
		"cut": cut, "502": plain(502), "504": plain(504), "500 of a proxy": plain(500),
		"503 of a proxy": plain(503), "unreadable": plain(201),
		"504 problem": said(504), "408 of a proxy": plain(408),
		"redirect": func(w http.ResponseWriter) { w.WriteHeader(http.StatusFound) },
	}
	for _, name := range []string{"http", "envoy"} {
		for what, m := range makers {
			for end, lose := range ends {
				if end != "504" && what != "v1 pod" && what != "v2 pod" {
					continue // the ends are told apart in one place
				}
				t.Run(strings.Join([]string{name, what, end}, "/"), func(t *testing.T) {
					t.Parallel()
					l := &lossy{lose: lose, commit: 2}
					d, ask := l.open(t, name, m)
					got := ask()
					made := d.made(t, m.operation)
					if len(made) != 1 || answeredID(got) != made[0] || l.creates != 1 {
						t.Errorf("%d %s after %d creates, want the id of the one in %v", got.Status, got.Body, l.creates, made)
					}
				})
			}
		}
	}
}

// brief are settings that give requests a second.
const brief = "v1: {budget: 1s, volume_budget: 1s}\ngraphql: {create_timeout: 1s, timeout: 1s}\ntimeouts: {lookup: 1s}\n"

// briefly gives requests a second.
func briefly(d *door) { d.text = strings.Replace(d.text, "log:", brief+"log:", 1) }

// TestRepeatsFindLostCreates: a resource that is not found while the request's time lasts is found
// by its repeat, and only by that.
func TestRepeatsFindLostCreates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"http", "envoy"} {
		for what, m := range makers {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				l := &lossy{lose: plain(504), commit: -1}
				d, ask := l.open(t, name, m, briefly)
				began := time.Now()
				if first := ask(); !unfinishedAnswer(first) {
					t.Errorf("first answer: %d %s", first.Status, first.Body)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("first answer after %v, want about 1s", took)
				}
				if again := ask(); !unfinishedAnswer(again) {
					t.Errorf("a repeat before it is carried out: %d %s", again.Status, again.Body)
				}
				l.mu.Lock()
				l.commit = 0
				l.mu.Unlock()
				again := ask()
				made := d.made(t, m.operation)
				if len(made) != 1 || answeredID(again) != made[0] || l.creates != 1 {
					t.Errorf("repeat: %d %s after %d creates, want the id of the one in %v", again.Status, again.Body, l.creates, made)
				}
				l.mu.Lock()
				l.lose = nil
				l.mu.Unlock()
				if next := ask(); answeredID(next) == answeredID(again) {
					t.Errorf("what was answered is given away again: %d %s", next.Status, next.Body)
				}
			})
		}
	}
}

// TestCreatesNeedTheListBefore: a resource without a time of creation is not created if the list of those that exist cannot be read. It could
// not be found after a lost response, and its repeat would create a second one.
func TestCreatesNeedTheListBefore(t *testing.T) {
	t.Parallel()
	lists := map[string]string{"createNetworkVolume": "listNetworkVolumes", "createTemplate": "listTemplates", "createRegistry": "listRegistries"}
	for what, m := range makers {
		if lists[m.operation] == "" {
			continue
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := &lossy{lose: plain(504)}
			d, ask := l.open(t, "http", m)
			d.platform.AddFault(platform.Fault{Kind: platform.FaultStatus, Operation: lists[m.operation], Status: 500, Times: 1})
			if a := ask(); !strings.Contains(a.Body, "503") || l.creates != 0 {
				t.Errorf("%d %s after %d creates, want 503 and none", a.Status, a.Body, l.creates)
			}
			if again := ask(); answeredID(again) == "" || !slices.Equal(d.made(t, m.operation), []string{answeredID(again)}) {
				t.Errorf("repeat: %d %s after %d creates, want the one in %v", again.Status, again.Body, l.creates, d.made(t, m.operation))
			}
			d.platform.AddFault(platform.Fault{Kind: platform.FaultForbidden, Operation: lists[m.operation]})
			l.mu.Lock()
			l.lose = nil
			l.mu.Unlock()
			if a := ask(); answeredID(a) == "" {
				t.Errorf("with a platform key that may not list: %d %s, want success", a.Status, a.Body)
			}
		})
	}
}

// TestLostCreatesAreDatedByTheStore: gateways agree about how old a create is, whatever
// their own clocks show. The store's stands still here, before it was last asked.
func TestLostCreatesAreDatedByTheStore(t *testing.T) {
	t.Parallel()
	for _, budget := range []string{"", ", budget: {gpus: 2}"} {
		for _, name := range []string{"http", "envoy"} {
			t.Run(name+budget, func(t *testing.T) {
				t.Parallel()
				l := &lossy{lose: plain(504), commit: -1}
				d, ask := l.open(t, name, makers["v2 pod"], briefly, func(d *door) {
					d.text = strings.Replace(d.text, "{id: platform}", "{id: platform"+budget+"}", 1)
				})
				if a := ask(); !unfinishedAnswer(a) {
					t.Fatalf("create: %d %s", a.Status, a.Body)
				}
				var began []time.Time
				for _, row := range d.intents(t) {
					ms, err := strconv.ParseInt(strings.Fields(row)[1], 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					began = append(began, time.UnixMilli(ms))
				}
				now := d.clock.Now()
				if len(began) != 1 || began[0].After(now) || began[0].Before(now.Add(-time.Minute)) {
					t.Errorf("calls that began at %v, want one, shortly before the store's %v", began, now)
				}
			})
		}
	}
}

// TestRepeatsOfWhatIsRefusedNow: a create that was allowed stays done. The repeat of a lost create
// gets the pod although its own hold has used the budget up, or a policy that came meanwhile
// refuses it; the next request does not.
func TestRepeatsOfWhatIsRefusedNow(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"http", "envoy"} {
		for _, what := range []string{"v1 pod", "v2 pod", "graphql pod"} {
			for by, gpus := range map[string]string{"budget": "1", "policy": "2"} {
				t.Run(strings.Join([]string{name, what, by}, "/"), func(t *testing.T) {
					t.Parallel()
					l := &lossy{lose: plain(504), commit: -1}
					d, ask := l.open(t, name, makers[what], briefly, func(d *door) {
						d.text = strings.Replace(d.text, "{id: platform}", "{id: platform, budget: {gpus: "+gpus+"}}", 1)
					})
					if first := ask(); !unfinishedAnswer(first) {
						t.Fatalf("first answer: %d %s", first.Status, first.Body)
					}
					text := strings.Replace(d.text, brief, "", 1) // a repeat that finds the pod may take longer
					if by == "policy" {
						text = strings.Replace(text, "    policies:\n", "    policies:\n      - policy: kill_switch\n", 1)
					}
					if err := d.gateway.Swap(load(t, text, d.upstream)); err != nil {
						t.Fatal(err)
					}
					l.mu.Lock()
					l.commit = 0
					l.mu.Unlock()
					again := ask()
					l.mu.Lock()
					l.lose = nil
					l.mu.Unlock()
					made := d.made(t, "createPod")
					if len(made) != 1 || answeredID(again) != made[0] {
						t.Fatalf("repeat: %d %s, want the id of the one in %v", again.Status, again.Body, made)
					}
					if next := ask(); answeredID(next) != "" || len(d.made(t, "createPod")) != 1 {
						t.Errorf("the next request: %d %s, want it refused", next.Status, next.Body)
					}
				})
			}
		}
	}
}

// TestTwinsAreNotAdopted: a resource that looks the same and was there before the request is not
// the one that a lost create made, whichever time the platform's clock shows.
func TestTwinsAreNotAdopted(t *testing.T) {
	t.Parallel()
	twins := map[string]string{
		"createPod": "/v2/pods", "createEndpoint": "/v2/serverless", "createTemplate": "/v2/templates",
		"createNetworkVolume": "/v2/network-volumes", "createRegistry": "/v2/registries",
	}
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		for what, m := range makers {
			t.Run(ahead.String()+"/"+what, func(t *testing.T) {
				t.Parallel()
				l := &lossy{commit: 0}
				skewed := func(d *door) { d.clock = platform.ManualClock(start.Add(-ahead)) }
				d, ask := l.open(t, "http", m, briefly, skewed)
				ask() // the twin, made as the lost one will be
				twin := d.made(t, m.operation)
				if len(twin) != 1 {
					t.Fatalf("twins at %s: %v, want one", twins[m.operation], twin)
				}
				d.forget() // nothing is known of it here
				d.platform.Clock().AdvanceTo(d.platform.Clock().Now().Add(3 * time.Second))
				d.clock.Advance(3 * time.Second)
				l.mu.Lock()
				l.lose, l.commit = plain(502), -1
				l.mu.Unlock()
				if got := ask(); !unfinishedAnswer(got) {
					t.Errorf("%d %s, want 504: the one there is, %s, is older", got.Status, got.Body, twin[0])
				}
				if again := ask(); !unfinishedAnswer(again) {
					t.Errorf("repeat: %d %s, want 504", again.Status, again.Body)
				}
			})
		}
	}
}
