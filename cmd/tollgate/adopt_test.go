package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A file without audit log entries is an error, and the number of owners is printed even if it is 0.
func TestOwnersOfAnAuditLog(t *testing.T) {
	t.Parallel()
	var reconciled atomic.Bool // before, the ledger has no resources
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/admin/spend/reconcile":
			reconciled.Store(true)
			_, _ = w.Write([]byte(`{}`))
		case r.Method == http.MethodPost:
			_, _ = w.Write([]byte(`{"resource":"p1","owner":"team ml, key ann","was":"nobody"}`))
		case reconciled.Load():
			_, _ = w.Write([]byte(`{"resources":[{"id":"p1"},{"id":"p2","team":"ops"}]}`))
		default:
			_, _ = w.Write([]byte(`{"resources":[]}`))
		}
	}))
	t.Cleanup(s.Close)
	created := func(id string) string {
		return `{"seq":1,"phase":"intent","org":"acme","team":"ml","key":"ann","verb":"create"}` + "\n" +
			`{"seq":2,"phase":"result","of":1,"resource":"` + id + `"}` + "\n"
	}
	for name, test := range map[string]struct {
		text, stdout, stderr string
		code                 int
	}{
		"missing owner":        {text: created("p1"), stdout: "p1: team ml, key ann (was: nobody)\n1 owner restored\n"},
		"known owner":          {text: created("p2"), stdout: "0 owners restored\n"},
		"another organisation": {text: strings.ReplaceAll(created("p1"), "acme", "globex"), stdout: "0 owners restored\n"},
		"configuration":        {text: "orgs: []\n", stderr: "contains no entries", code: 1},
		"decision log":         {text: `{"decision_id":"d1","result":{}}` + "\n", stderr: "contains no entries", code: 1},
		"numbered lines":       {text: `{"seq":7}` + "\n", stderr: "contains no entries", code: 1},
		"empty":                {stderr: "contains no entries", code: 1},
	} {
		reconciled.Store(false)
		file := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := tell(t, "spend", "adopt", "acme", "--from-audit", file, "--admin", s.URL)
		if code != test.code || stdout != test.stdout || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: exit %d\n%s%s", name, code, stdout, stderr)
		}
	}
}
