package policies_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	sdktest "github.com/open-policy-agent/opa/v1/sdk/test"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
)

// opaBundles serves one of several bundles of OPA's own test server at one
// address, or none.
type opaBundles struct {
	proxy *httputil.ReverseProxy
	path  atomic.Value // of the bundle to serve; "" is an outage
}

func (s *opaBundles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _ := s.path.Load().(string)
	if path == "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.URL.Path = path
	s.proxy.ServeHTTP(w, r)
}

// versionBundle is two policies and data, all of which tell the version.
func versionBundle(version int) map[string]string {
	rego := `package policies.%s

deny contains sprintf("%s %d of data %%d", [data.version])
`
	return map[string]string{
		".manifest": fmt.Sprintf(`{"revision": "v%d", "roots": [""]}`, version),
		"data.json": fmt.Sprintf(`{"version": %d}`, version),
		"one.rego":  fmt.Sprintf(rego, "one", "one", version),
		"two.rego":  fmt.Sprintf(rego, "two", "two", version),
	}
}

func serveBundles(t *testing.T) (*opaBundles, string) {
	t.Helper()
	opa := sdktest.MustNewServer(
		sdktest.MockBundle("/bundles/1", versionBundle(1)),
		sdktest.MockBundle("/bundles/2", versionBundle(2)),
		sdktest.MockBundle("/bundles/network", map[string]string{"x.rego": "package policies.x\n\ndeny contains \"x\" if http.send({}).x\n"}),
		sdktest.MockBundle("/bundles/types", map[string]string{"x.rego": "package policies.x\n\ndeny contains \"x\" if input.caller.teem\n"}),
		sdktest.ParserOptions(ast.ParserOptions{RegoVersion: ast.RegoV1}),
	)
	t.Cleanup(opa.Stop)
	at, err := url.Parse(opa.URL())
	if err != nil {
		t.Fatal(err)
	}
	s := &opaBundles{proxy: httputil.NewSingleHostReverseProxy(at)}
	s.path.Store("/bundles/1")
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, front.URL
}

// verdicts collects decisions, by revision.
type verdicts struct {
	mu   sync.Mutex
	of   map[string]string // the verdict of each revision
	made int
}

// note holds a decision against those before: one revision, one verdict, and no
// verdict that is put together from two states.
func (v *verdicts) note(t *testing.T, d *policies.Decision) {
	t.Helper()
	var texts []string
	versions := map[string]bool{}
	for _, x := range d.Deny {
		texts = append(texts, x.Policy+": "+x.Message)
		var name string
		var rego, data int
		if n, _ := fmt.Sscanf(x.Message, "%s %d of data %d", &name, &rego, &data); n == 3 {
			versions[fmt.Sprint(rego)], versions[fmt.Sprint(data)] = true, true
		}
	}
	verdict := strings.Join(texts, "; ")
	v.mu.Lock()
	defer v.mu.Unlock()
	v.made++
	if d.Revision == "" || len(versions) != 1 {
		t.Errorf("revision %q decided from versions %v: %s", d.Revision, versions, verdict)
	}
	if was, seen := v.of[d.Revision]; seen && was != verdict {
		t.Errorf("revision %s decided both\n%s\n%s", d.Revision, was, verdict)
	}
	v.of[d.Revision] = verdict
}

// TestBundlesUnderLoad replaces bundles and configuration while calls are
// judged. Every decision is of one state; broken bundles and outages change
// nothing and are seen in the status.
func TestBundlesUnderLoad(t *testing.T) {
	server, at := serveBundles(t)
	kept := files.UnrestrictedTarget(filepath.Join(t.TempDir(), "kept.tar.gz"))
	config := func(most int) policies.Config {
		return policies.Config{
			Bundle:   &policies.Bundle{URL: egress.UnrestrictedURL(at), Poll: 2 * time.Millisecond, AllowUnsigned: true, Persist: kept},
			Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": most}}},
		}
	}
	var e atomic.Pointer[policies.Engine]
	e.Store(follow(t, config(1)))
	status := func() policies.Status { return e.Load().Status()[0] }
	eventually(t, "the first bundle", func() bool { return status().Bundle == "v1" })

	seen := &verdicts{of: map[string]string{}}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4","count":2}}`)
			for !stop.Load() {
				d, err := e.Load().Decide(t.Context(), "acme", in)
				if err != nil {
					t.Error(err)
					return
				}
				seen.note(t, &d)
			}
		})
	}
	defer wg.Wait()
	defer stop.Store(true)
	for round := range 2 {
		for _, version := range []string{"2", "1"} {
			server.path.Store("/bundles/" + version)
			eventually(t, "bundle "+version, func() bool { return status().Bundle == "v"+version && status().Err == nil })
			e.Store(followAfter(t, e.Load(), config(1+round)))
			eventually(t, "bundle "+version+" in the new engine", func() bool { return status().Bundle == "v"+version && status().Err == nil })
			good := status()
			for _, broken := range []string{"/bundles/network", "/bundles/types", "/bundles/none", ""} {
				server.path.Store(broken)
				eventually(t, "the fault of "+broken, func() bool { return status().Err != nil })
				if now := status(); now.Revision != good.Revision || now.Bundle != good.Bundle {
					t.Errorf("%q changed revision %s, bundle %s to %s, %s", broken, good.Revision, good.Bundle, now.Revision, now.Bundle)
				}
				server.path.Store("/bundles/" + version)
				eventually(t, "the recovery from "+broken, func() bool { return status().Err == nil })
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	// Two bundles under two configurations.
	if len(seen.of) != 4 {
		t.Errorf("got %d revisions, want 4: %v", len(seen.of), seen.of)
	}
	t.Logf("%d decisions by %d revisions", seen.made, len(seen.of))
}
