package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// Whatever decode takes, encoding/json takes too and reads the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{gpuPod, queueEndpoint, slurm, `{"a":{"a":1,"b":[null,true,"\u00e9"]}}`, `{"a":1,"a":2}`, `[1e400]`, "\ufeff{}", `{} {}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := decode(body)
		if err != nil {
			if p, ok := errors.AsType[*problem](err); !ok || p.status != http.StatusBadRequest || len(p.errors) != 1 {
				t.Fatalf("%q: got %v, want a 400 with one error", body, err)
			}
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q was taken, and encoding/json says %v", body, err)
		}
		if got := encoded(v); !bytes.Equal(got, encoded(want)) {
			t.Fatalf("%q: got %s, want %s", body, got, encoded(want))
		}
	})
}

// No body of any operation is answered with a server error or with something
// that is not JSON.
func FuzzBodies(f *testing.F) {
	for i := range restRoutes() {
		for _, s := range []string{gpuPod, queueEndpoint, slurm, `{"action":"stop"}`, `{"keys":["ssh-rsa AAAA"]}`, `{"name":"a","size":10,"dataCenter":"EU-RO-1"}`, `{"gpu":{"minCudaVersion":""},"mounts":{"network":[]}}`} {
			f.Add(i, s)
		}
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		routes := slices.DeleteFunc(restRoutes(), func(r route) bool { return !r.body })
		route := routes[((i%len(routes))+len(routes))%len(routes)]
		r := newRig(t, Options{})
		path := strings.Replace(route.pattern, "{id}", r.newPod(gpuPod), 1)
		a := r.call(route.method, path, body)
		if a.status >= 500 || a.status != 204 && a.body == nil {
			t.Fatalf("%s %s %q: got %d %s", route.method, path, body, a.status, a.raw)
		}
		if a.status == 422 && !strings.Contains(a.raw, `"errors":["$`) {
			t.Fatalf("%s %s %q: a 422 says what was wrong, got %s", route.method, path, body, a.raw)
		}
	})
}

// No path and query make the emulator fail.
func FuzzTargets(f *testing.F) {
	for _, r := range restRoutes() {
		f.Add(r.pattern, strings.Join(r.query, "=1&"))
	}
	f.Add("/v2/pods/%2e%2e", "a=%zz&;")
	s, err := New(Options{OpenAPI: []byte("{}"), KeepCalls: -1, Accounts: []Account{{ID: "a", Key: DefaultKey, Exempt: true}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/"+strings.TrimPrefix(path, "/")+"?"+query, nil)
		if err != nil {
			t.Skip()
		}
		req.Header.Set("Authorization", "Bearer "+DefaultKey)
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, req)
		if rec.Code >= 500 {
			t.Fatalf("%s?%s: got %d %s", path, query, rec.Code, rec.Body)
		}
	})
}
