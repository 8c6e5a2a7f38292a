package ui_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// A decision stays visible after its request has expired: the decided requests and the audit log say what was approved, by whom and why, and
// the audit log and the alerts lead to it.
func TestDecidedApprovals(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	c := start(t, strings.Replace(text, "policy: gpu_count,", "policy: gpu_count, approvable: true,", 1)+"audit: {file: {path: "+file+"}}\n", store)
	c.pod(t, "3")
	root := c.as(t, "root")
	_, _, page := root.get(c.URL + "/ui/approvals")
	id := regexp.MustCompile(`id="(ap-\w+)"`).FindStringSubmatch(page)
	if id == nil {
		t.Fatalf("no request: %s", page)
	}
	form := url.Values{"org": {"acme"}, "id": {id[1]}, "reason": {"the paper"}, "back": {"/ui/approvals"}}
	if status, _, body := root.post(c.URL+"/ui/approvals/grant", form); status != http.StatusSeeOther {
		t.Fatalf("grant: %d %s", status, body)
	}
	shows := func(who *person, path string, want ...string) {
		t.Helper()
		_, _, page := who.get(c.URL + path)
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s has no %q: %s", path, text, page)
			}
		}
	}
	link := "id=" + id[1] + "&amp;org=acme&amp;view=decided"
	shows(root, "/ui/approvals?view=decided", `id="`+id[1], "Approved</span>", "Decided by", "the paper")
	shows(root, "/ui/audit", "Approved 3 × NVIDIA L4 for team research, at most $1.", link)
	shows(root, "/ui/alerts", "was denied and can be approved until", "Approved</span>", link)
	c.ahead.Store(int64(2 * time.Hour))
	store.FastForward(2 * time.Hour)
	for _, path := range []string{"/ui/approvals?view=decided", "/ui/approvals?view=decided&id=" + id[1]} {
		shows(root, path, "Earlier decisions", "3 × NVIDIA L4 for team research, at most $1.", "Approved</span>", "root", "reason: the paper")
	}
	shows(root, "/ui/alerts", "Approved</span>", link)
	shows(root, "/ui/approvals?id=ap-1", "Request not found")
	shows(c.as(t, "vera"), "/ui/approvals?view=decided", "No decided requests", "Earlier decisions are in the audit log.")
	if _, _, page := c.as(t, "vera").get(c.URL + "/ui/alerts"); !strings.Contains(page, "No longer pending") || strings.Contains(page, "ui/approvals?id") {
		t.Errorf("a viewer is led to a request that is not shown: %s", page)
	}
}
