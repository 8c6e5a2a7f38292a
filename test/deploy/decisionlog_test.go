package deploy_test

import (
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// outage is a service of decision logs that refuses the first posts.
type outage struct {
	*httptest.Server

	mu      sync.Mutex // guards what follows
	refuses int
	taken   []string
}

// ServeHTTP takes a batch.
func (o *outage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var batch []struct {
		ID string `json:"decision_id"`
	}
	zip, err := gzip.NewReader(r.Body)
	if err == nil {
		err = json.NewDecoder(zip).Decode(&batch)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuses--; err != nil || o.refuses >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	for _, e := range batch {
		o.taken = append(o.taken, e.ID)
	}
}

func (o *outage) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.taken, id)
}

// TestDecisionsOutliveAnOutage: a service that answers again after five attempts gets the decisions that were made before. Status says
// meanwhile that they wait.
func TestDecisionsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	service := &outage{refuses: 5}
	service.Server = httptest.NewServer(service)
	t.Cleanup(service.Close)
	tollgate := binary.Path(t)
	data, admin := freeAddr(t), freeAddr(t)
	config := configure(t, data, admin, platform.RunT(t).URL, "redis: {embedded: true}\ndecisions: {service: {url: \""+service.URL+"/\"}}\n")
	gateway := exec.CommandContext(t.Context(), tollgate, "serve", "-c", config)
	gateway.Env = append(gateway.Environ(), "ACME_KEY="+platform.DefaultKey)
	running := start(t, gateway)
	running.wait(t, `"msg":"serving"`)
	a := world.Ask(t, data, world.Request("GET", "/v2/pods", callerKey, ""))
	if a.Status != http.StatusOK {
		t.Fatalf("list: %d %s", a.Status, a.Body)
	}
	running.wait(t, `"msg":"decision log sink failed"`)
	const want = "decision log (service): 1 events queued: service responded with status 503"
	if out, err := exec.CommandContext(t.Context(), tollgate, "status", "--admin", "http://"+admin).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("status (%v):\n%s\nwant %q in it", err, out, want)
	}
	world.Until(t, "the decision of before the outage", func() bool { return service.has(a.Header.Get("X-Tollgate-Decision")) })
	running.wait(t, `"msg":"decision log sink recovered"`)
	if out, err := exec.CommandContext(t.Context(), tollgate, "status", "--admin", "http://"+admin).CombinedOutput(); err != nil || strings.Contains(string(out), "decision log (") {
		t.Errorf("status after the outage (%v):\n%s\nwant nothing about the decision log", err, out)
	}
	running.stop(t)
}
