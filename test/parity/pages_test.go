package parity

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// noPods is an empty list of pods.
const noPods = `{"pods":[],"pagination":{"nextCursor":null,"hasNextPage":false}}`

// paged has the platform return lists in pages of so many records, or whole for -1.
func paged(t *testing.T, records int) option {
	t.Helper()
	return func(d *door) {
		d.platform = platform.RunT(t, platform.WithClock(platform.ManualClock(start)), platform.WithPageSize(records), platform.WithAccounts(
			platform.Account{ID: "acme", Key: "pk-acme-" + canary},
			platform.Account{ID: "globex", Key: "pk-globex-" + canary},
		))
		d.upstream = d.platform.URL
	}
}

// TestListsAreWhole: callers of every dialect see all pages of a list as one, whether the platform
// pages or not.
func TestListsAreWhole(t *testing.T) {
	t.Parallel()
	for _, records := range []int{2, 0, -1} {
		t.Run(fmt.Sprint(records), func(t *testing.T) {
			t.Parallel()
			eachDoor(t, func(t *testing.T, d *door) {
				ids := map[string][]string{}
				for n := range 5 {
					for path, body := range map[string]string{
						"pods": `{"name":"p%d","image":"img:1","gpu":{"id":"NVIDIA L4"}}`, "templates": `{"name":"t%d","image":"img:1","serverless":true}`,
						"serverless": `{"name":"e%d","image":"img:0","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]},"workers":{"max":1}}`,
					} {
						id, _ := d.asPlatform(t, "POST", "/v2/"+path, fmt.Sprintf(body, n))["id"].(string)
						ids[path] = append(ids[path], id)
					}
				}
				endpoint := ids["serverless"][0]
				for n := range 4 {
					d.asPlatform(t, "PATCH", "/v2/serverless/"+endpoint, fmt.Sprintf(`{"image":"img:%d"}`, n+1))
				}
				for list, want := range map[string]struct {
					path string
					ids  int
				}{"pods": {"/v2/pods", 5}, "templates": {"/v2/templates", 5}, "endpoints": {"/v2/serverless", 5}, "releases": {"/v2/serverless/" + endpoint + "/releases", 5}} {
					a := d.ask(t, request("GET", want.path, "key_platform", ""))
					items, _ := field(t, a.Body, list).([]any)
					pagination := fmt.Sprint(field(t, a.Body, "pagination"))
					if a.Status != 200 || len(items) != want.ids || pagination != "map[hasNextPage:false nextCursor:<nil>]" {
						t.Errorf("%s: %d with %d items, %s", list, a.Status, len(items), a.Body)
					}
				}
				for _, legacy := range []string{
					request("GET", "/v1/pods", "key_platform", ""), graphqlBy("key_platform", `{ myself { pods { id } } }`),
				} {
					a := d.ask(t, legacy)
					for _, id := range ids["pods"] {
						if !strings.Contains(a.Body, id) {
							t.Errorf("%s: %d %s, want %s in it", legacy, a.Status, a.Body, id)
						}
					}
				}
				if a := d.ask(t, request("GET", "/v1/templates", "key_platform", "")); strings.Count(a.Body, `"id":`) != 5 {
					t.Errorf("v1 templates: %s, want five", a.Body)
				}
				if a := d.ask(t, request("GET", "/v1/endpoints", "key_platform", "")); !strings.Contains(a.Body, endpoint) {
					t.Errorf("v1 endpoints: %s, want %s in it", a.Body, endpoint)
				}
			}, paged(t, records))
		})
	}
}

// pagesFail answers requests with a cursor in place of the platform.
func pagesFail(t *testing.T, answer http.HandlerFunc) option {
	t.Helper()
	return inFront(t, func(w http.ResponseWriter, r *http.Request, platform http.Handler) {
		if r.URL.Query().Has("cursor") {
			answer(w, r)
			return
		}
		platform.ServeHTTP(w, r)
	})
}

// A page that cannot be read makes an error of the whole list, in every dialect, and leaves the
// ledger unknown.
func TestNoPartialLists(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}
	}
	for name, tt := range map[string]struct {
		page   http.HandlerFunc
		status int
	}{
		"503":               {text(503, `{"title":"x","status":503,"detail":"not now"}`), 503},
		"429":               {text(429, `{"title":"x","status":429,"detail":"slow down"}`), 429},
		"404":               {text(404, `{"title":"x","status":404,"detail":"no"}`), 404},
		"202":               {text(202, noPods), 502},
		"cut":               {func(w http.ResponseWriter, _ *http.Request) { cut(w) }, 502},
		"cut in the page":   {text(200, `{"pods":[{"id":`), 502},
		"without pages":     {text(200, `{"pods":[]}`), 502},
		"the same for ever": {text(200, `{"pods":[],"pagination":{"nextCursor":"again","hasNextPage":true}}`), 502},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDoor(t, func(t *testing.T, d *door) {
				for range 3 {
					d.asPlatform(t, "POST", "/v2/pods", podL4)
				}
				if a := d.ask(t, request("GET", "/v2/pods", "key_research", "")); a.Status != tt.status || strings.Contains(a.Body, `"pods"`) {
					t.Errorf("v2: %d %s, want %d", a.Status, a.Body, tt.status)
				}
				if name == "503" || name == "cut in the page" {
					if a := d.ask(t, request("GET", "/v1/pods", "key_research", "")); a.Status < 500 {
						t.Errorf("v1: %d %s", a.Status, a.Body)
					}
				}
				if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 503 {
					t.Errorf("create: %d %s, want 503: what runs is unknown", a.Status, a.Body)
				}
			}, paged(t, 2), budgeted("{gpus: 6}"), pagesFail(t, tt.page))
		})
	}
	if n := asked.Load(); n > 1000 {
		t.Errorf("%d pages were asked for", n)
	}
}

// After the loss of its store, the ledger adopts all pages: 6 GPUs of 6 are not 10 of 6.
func TestALostLedgerAdoptsAllPages(t *testing.T) {
	t.Parallel()
	for _, records := range []int{2, -1} {
		eachDoor(t, func(t *testing.T, d *door) {
			create := func(n int) answer {
				return d.ask(t, request("POST", "/v2/pods", "key_research", strings.Replace(podL4, `"a"`, fmt.Sprintf(`"p%d"`, n), 1)))
			}
			for n := range 5 {
				if a := create(n); a.Status != 201 {
					t.Fatalf("create: %d %s", a.Status, a.Body)
				}
			}
			d.forget()
			if a := create(5); a.Status != 201 {
				t.Errorf("the sixth: %d %s, want 201", a.Status, a.Body)
			}
			for n := range 4 {
				if a := create(6 + n); a.Status != 402 {
					t.Errorf("GPU %d of 6: %d %s, want 402", 7+n, a.Status, a.Body)
				}
			}
		}, paged(t, records), func(d *door) {
			d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    budget: {gpus: 6}", 1)
		})
	}
}

// A create whose answer is lost is found on the third page, behind resources that were made
// since.
func TestALostCreateOnAnotherPage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"http", "envoy"} {
		for _, what := range []string{"v2 pod", "v1 pod", "graphql pod", "v2 endpoint"} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				var d *door
				others := func(w http.ResponseWriter) {
					for range 5 {
						d.asPlatform(t, "POST", "/v2/pods", strings.Replace(podL4, `"a"`, `"other"`, 1))
						d.asPlatform(t, "POST", "/v2/serverless", `{"name":"other","image":"img:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]},"workers":{"max":1}}`)
					}
					plain(http.StatusBadGateway)(w)
				}
				l := &lossy{lose: others}
				m := makers[what]
				opened, ask := l.open(t, name, m, paged(t, 2))
				d = opened
				a := ask()
				id := answeredID(a)
				if id == "" || l.creates != 1 {
					t.Fatalf("%d %s by %d creates, want the resource that was made", a.Status, a.Body, l.creates)
				}
				path := map[string]string{"createPod": "/v2/pods/", "createEndpoint": "/v2/serverless/"}[m.operation]
				if got := d.asPlatform(t, "GET", path+id, "")["name"]; got != "n" {
					t.Errorf("found %v, want n", got)
				}
			})
		}
	}
}
