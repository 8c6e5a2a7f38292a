package gateway_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/world"
)

// openBelow lists the files below a directory that this process has open, by their names.
func openBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(all) == 0 {
		t.Skip("no /proc/self/fd")
	}
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir) {
			names = append(names, filepath.Base(to))
		}
	}
	slices.Sort(names)
	return names
}

// A gateway that cannot be made closes the files that it has opened, wherever it fails.
func TestNewClosesWhatItHasOpened(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(c *settings.Config){
		"counters":          func(c *settings.Config) { c.Limits.Anonymous.Rate = -1 },
		"the configuration": func(c *settings.Config) { c.Platform.BaseURL = "nowhere" },
		"":                  func(*settings.Config) {},
	} {
		dir := t.TempDir()
		cfg := world.Configuration(t, `
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
audit: {file: {path: "`+dir+`/audit.log"}}
decisions: {file: {path: "`+dir+`/decisions.log"}}
orgs: [{id: acme, credential: {env: ACME}, budget: {gpus: 1}}]
`, map[string]string{"ACME": "credential"})
		damage(&cfg)
		g, err := gateway.New(cfg, gateway.Deps{
			Redis: world.Redis(t, miniredis.RunT(t).Addr()), Logger: slog.New(slog.DiscardHandler), Providers: world.Providers(t, cfg.Telemetry), Now: time.Now,
			State: dir,
		})
		if (err == nil) != (name == "") {
			t.Errorf("%s: New: %v", name, err)
		}
		if g != nil {
			if got := openBelow(t, dir); !slices.Contains(got, "audit.log") {
				t.Errorf("open while a gateway waits: %q, want the audit log among them", got)
			}
			g.Close()
		}
		if got := openBelow(t, dir); len(got) > 0 {
			t.Errorf("%s: left open: %q", name, got)
		}
	}
}
