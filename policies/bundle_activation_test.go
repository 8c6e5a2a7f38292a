package policies_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
)

// TestBundleActivation: an engine offers a new bundle to another engine before the bundle is in force. The
// section that was refused for naming a policy of that bundle alone fits now, also if the present section does not, and the
// engine that is replaced never decides by the bundle.
func TestBundleActivation(t *testing.T) {
	t.Parallel()
	const mine = "package policies.mine\n\ndeny contains \"mine\" if true\n"
	const fresh = "package policies.fresh\n\ndeny contains \"fresh\" if true\n"
	for _, tt := range []struct {
		name    string
		bundle  map[string]string
		next    []policies.Entry
		denials string
	}{
		{"a policy more", map[string]string{"mine.rego": mine, "fresh.rego": fresh}, []policies.Entry{{Policy: "fresh", Mode: policies.ModeWarn}}, "mine"},
		{"another policy", map[string]string{"fresh.rego": fresh}, []policies.Entry{{Policy: "fresh", Mode: policies.ModeShadow}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &bundleServer{}
			s.set("1", bundleOf(t, "r1", map[string]string{"mine.rego": mine}), http.StatusOK)
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			persist := filepath.Join(t.TempDir(), "kept.tar.gz")
			section := func(entries ...policies.Entry) map[string]policies.Config {
				return map[string]policies.Config{"acme": {
					Bundle: &policies.Bundle{URL: egress.UnrestrictedURL(server.URL), AllowUnsigned: true, MayDrop: true, Persist: files.UnrestrictedTarget(persist), Poll: time.Millisecond}, Policies: entries,
				}}
			}
			var refused atomic.Bool
			var once sync.Once
			replaced := make(chan *policies.Engine, 1)
			var first *policies.Engine
			first, err := policies.NewEngine(unhurried(), section(policies.Entry{Policy: "mine"}), policies.Deps{
				OnNewBundle: func(context.Context) bool {
					if !refused.Load() {
						return false
					}
					once.Do(func() {
						second, err := policies.NewEngine(unhurried(), section(tt.next...), policies.Deps{Previous: first})
						if err != nil {
							t.Errorf("the section with the arriving bundle: %v", err)
						}
						replaced <- second
					})
					return true
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- first.Run(ctx) }()
			eventually(t, "the first bundle is in force", func() bool { _, ok := first.Revision("acme"); return ok })
			eventually(t, "the first bundle is kept", func() bool { _, err := os.Stat(persist); return err == nil })
			if _, err := policies.NewEngine(unhurried(), section(tt.next...), policies.Deps{Previous: first}); err == nil {
				t.Fatal("a section with a policy that no bundle has was taken")
			}
			revision, _ := first.Revision("acme")
			refused.Store(true)
			s.set("2", bundleOf(t, "r2", tt.bundle), http.StatusOK)
			second := <-replaced
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the replaced engine ended with %v", err)
			}
			if now, _ := first.Revision("acme"); now != revision {
				t.Error("the replaced engine took the bundle, too")
			}
			if second == nil {
				return
			}
			if got := denials(t, second, "1"); got != tt.denials {
				t.Errorf("denials are %q, want %q", got, tt.denials)
			}
			if got := second.Status()[0].Bundle; got != "r2" {
				t.Errorf("the bundle in force is %s, want r2", got)
			}
		})
	}
}
