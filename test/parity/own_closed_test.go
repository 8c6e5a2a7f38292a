package parity

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// heldBack puts a proxy before the platform that keeps back the answers to creates of
// pods until release is closed. made has the id of each.
func heldBack(t *testing.T, made chan<- string, release <-chan struct{}) option {
	t.Helper()
	return func(d *door) {
		u, err := url.Parse(d.platform.URL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
			ModifyResponse: func(res *http.Response) error {
				if res.Request.Method != http.MethodPost || res.Request.URL.Path != "/v2/pods" {
					return nil
				}
				body, err := io.ReadAll(res.Body)
				res.Body = io.NopCloser(bytes.NewReader(body))
				made <- fmt.Sprint(field(t, string(body), "id"))
				<-release
				return err
			},
		}
		s := httptest.NewServer(proxy)
		t.Cleanup(s.Close)
		d.upstream = s.URL
	}
}

// Between the making of a pod and the ledger's knowing its id, it exists for nobody but
// those who are exempt, its maker included.
func TestACreateUnderWay(t *testing.T) {
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) {
			made, release := make(chan string, 1), make(chan struct{})
			d := openDoor(t, name, apart("{read: team, exempt: [viewer]}"), heldBack(t, made, release))
			done := make(chan answer, 1)
			go func() { done <- d.ask(t, request("POST", "/v2/pods", "key_research", podL4)) }()
			pod := <-made
			for _, key := range []string{"key_other", "key_research"} {
				nobodySees(t, d, key, pod)
			}
			close(release)
			if a := <-done; a.Status != 201 {
				t.Fatalf("create: %d %s, want 201", a.Status, a.Body)
			}
			if a := d.ask(t, request("GET", "/v2/pods/"+pod, "key_research", "")); a.Status != 200 {
				t.Errorf("afterwards, for its maker: %d %s, want 200", a.Status, a.Body)
			}
			sameAnswer(t, d, "afterwards, for another team", pod, func(id string) answer {
				return d.ask(t, request("GET", "/v2/pods/"+id, "key_other", ""))
			})
		})
	}
}

// nobodySees asks for a pod in each dialect, whose id a caller cannot have.
func nobodySees(t *testing.T, d *door, key, pod string) {
	t.Helper()
	before := len(d.platform.Calls())
	for _, call := range [][3]string{
		{"GET", "/v2/pods/<id>", ""},
		{"GET", "/v2/pods/<id>/logs", ""},
		{"PATCH", "/v2/pods/<id>", `{"name":"b"}`},
		{"DELETE", "/v2/pods/<id>", ""},
		{"POST", "/v2/pods/<id>/action", `{"action":"stop"}`},
		{"GET", "/v1/pods/<id>", ""},
		{"PATCH", "/v1/pods/<id>", `{"name":"b"}`},
		{"DELETE", "/v1/pods/<id>", ""},
	} {
		sameAnswer(t, d, key+": "+call[0]+" "+call[1], pod, func(id string) answer {
			return d.ask(t, request(call[0], strings.Replace(call[1], "<id>", id, 1), key, call[2]))
		})
	}
	for _, query := range []string{`query { pod(input: {podId: "<id>"}) { id env } }`, `mutation { podTerminate(input: {podId: "<id>"}) }`} {
		sameAnswer(t, d, key+": "+query, pod, func(id string) answer { return d.ask(t, graphqlBy(key, strings.Replace(query, "<id>", id, 1))) })
	}
	for _, raw := range []string{
		request("GET", "/v2/pods", key, ""), request("GET", "/v1/pods", key, ""), graphqlBy(key, `query { myself { pods { id } } }`),
	} {
		if a := d.ask(t, raw); a.Status != 200 || strings.Contains(a.Body, pod) {
			t.Errorf("%s: a list: %d %s, want 200 without the pod", key, a.Status, a.Body)
		}
	}
	for _, c := range d.platform.Calls()[before:] {
		if c.Method != http.MethodGet && strings.Contains(c.Path, pod) {
			t.Errorf("%s: the platform was asked for %s %s", key, c.Method, c.Path)
		}
	}
}

// graphqlBy is graphql with another key.
func graphqlBy(key, query string) string {
	return strings.Replace(graphql(query), "key_research", key, 1)
}

// After a start without its ledger, a gateway answers 503 about what its ledger does not
// know yet, and never that it does not exist. The first call that asks rebuilds it.
func TestAColdStartIsNotAbsence(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		const fleet = 100
		ids := make([]string, fleet)
		for i := range ids {
			ids[i] = d.rented(t, strings.Replace(podL4, `"a"`, fmt.Sprintf(`"pod-%d"`, i), 1))
		}
		restore := d.keepOwners(t)
		d.forget()
		d.platform.AddFault(platform.Fault{Operation: "listClusters", Kind: platform.FaultStatus, Status: 503})
		for _, id := range ids {
			if a := d.ask(t, request("GET", "/v2/pods/"+id, "key_research", "")); a.Status != 503 || a.Header.Get("Retry-After") == "" {
				t.Fatalf("a pod that the ledger does not know yet: %d %s, want 503 with Retry-After", a.Status, a.Body)
			}
		}
		for _, raw := range []string{
			request("GET", "/v2/pods", "key_research", ""), request("PATCH", "/v2/pods/"+ids[0], "key_research", `{"name":"b"}`), request("DELETE", "/v2/pods/"+nothing, "key_research", ""),
			request("GET", "/v2/pods/"+ids[0]+"/logs", "key_research", ""), request("GET", "/v2/billing/pods?podId="+ids[0], "key_research", ""),
			request("GET", "/v1/pods", "key_research", ""), request("GET", "/v1/pods/"+ids[0], "key_research", ""), request("GET", "/v2/pods/"+nothing, "key_research", ""),
		} {
			if a := d.ask(t, raw); a.Status != 503 {
				t.Errorf("%s: %d %s, want 503", raw, a.Status, a.Body)
			}
		}
		if a := d.ask(t, graphql(`query { myself { pods { id } } }`)); !strings.Contains(a.Body, "errors") {
			t.Errorf("GraphQL: %d %s, want an error", a.Status, a.Body)
		}
		d.platform.ClearFaults()
		restore()
		for _, id := range ids {
			if a := d.ask(t, request("GET", "/v2/pods/"+id, "key_research", "")); a.Status != 200 {
				t.Fatalf("a pod whose owner is known again: %d %s, want 200", a.Status, a.Body)
			}
		}
		if a := d.ask(t, request("GET", "/v2/pods/"+nothing, "key_research", "")); a.Status != 404 {
			t.Errorf("what nothing has, of a ledger that the asking has made complete: %d %s, want 404", a.Status, a.Body)
		}
		list := d.ask(t, request("GET", "/v2/pods", "key_research", ""))
		if pods, _ := field(t, list.Body, "pods").([]any); len(pods) != fleet {
			t.Errorf("the list has %d pods, want %d", len(pods), fleet)
		}
	}, apart("{read: team, exempt: [viewer]}"))
}

// keepOwners returns what puts back the records that the ledger has of resources.
func (d *door) keepOwners(t *testing.T) (restore func()) {
	t.Helper()
	var key string
	for _, k := range d.redis.Keys() {
		if strings.HasSuffix(k, "{acme}:resources") {
			key = k
		}
	}
	fields, err := d.redis.HKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	records := make(map[string]string, len(fields))
	for _, f := range fields {
		records[f] = d.redis.HGet(key, f)
	}
	return func() {
		for f, v := range records {
			d.redis.HSet(key, f, v)
		}
	}
}

// An id has one spelling. A spelling that the platform might take for the id of another team's pod
// ends like an id that nothing has, and the platform never sees it.
func TestAnIDHasOneSpelling(t *testing.T) {
	t.Parallel()
	spellings := []string{"ID", "Id", "id ", " id", "id.", "id,"}
	asks := []struct{ method, path, body string }{
		{"GET", "/v2/pods/<path>", ""},
		{"GET", "/v2/pods/<path>/logs", ""},
		{"PATCH", "/v2/pods/<path>", `{"name":"b"}`},
		{"DELETE", "/v2/pods/<path>", ""},
		{"POST", "/v2/pods/<path>/action", `{"action":"stop"}`},
		{"GET", "/v2/billing/pods?podId=<query>", ""},
		{"GET", "/v2/templates/<path>", ""},
		{"POST", "/v2/pods", strings.Replace(podL4, "{", `{"templateId":"<id>",`, 1)},
		{"GET", "/v1/pods/<path>", ""},
		{"PATCH", "/v1/pods/<path>", `{"name":"b"}`},
		{"POST", "/v1/pods/<path>/stop", ""},
		{"DELETE", "/v1/pods/<path>", ""},
		{"POST", "/graphql", `{"query":"mutation { podTerminate(input: {podId: \"<id>\"}) }"}`},
	}
	for _, unowned := range []string{"admins", "org"} {
		eachDoor(t, func(t *testing.T, d *door) {
			theirs := owned(t, d, "key_research")
			id := theirs[operation.KindPod]
			before := len(d.platform.Calls())
			for _, spelling := range spellings {
				other := strings.NewReplacer("ID", strings.ToUpper(id), "Id", strings.ToUpper(id[:1])+id[1:], "id", id).Replace(spelling)
				for _, call := range asks {
					status := func(id string) int {
						fill := strings.NewReplacer("<path>", url.PathEscape(id), "<query>", url.QueryEscape(id), "<id>", id)
						return d.ask(t, request(call.method, fill.Replace(call.path), "key_other", fill.Replace(call.body))).Status
					}
					if got, want := status(other), status(nothing); got != want {
						t.Errorf("%s %s for %q: %d, want %d, as for an id that nothing has", call.method, call.path, other, got, want)
					}
				}
			}
			for _, c := range d.platform.Calls()[before:] {
				if strings.Contains(strings.ToLower(c.Path+c.RawQuery+string(c.Body)), id) {
					t.Errorf("the platform was asked: %s %s?%s %s", c.Method, c.Path, c.RawQuery, c.Body)
				}
			}
		}, apart("{read: team, unowned: "+unowned+", exempt: [viewer]}"))
	}
}
