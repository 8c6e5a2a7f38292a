package operator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestEndsInUnchangedFiles reloads a file that has not changed: warnings of ends that have passed meanwhile are logged again, and other warnings are not.
func TestEndsInUnchangedFiles(t *testing.T) {
	t.Parallel()
	dir, noon := t.TempDir(), time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	digest := func(key string) string { return identity.DigestOf(key).String() }
	for name, text := range map[string]string{
		"tollgate.yaml": "platform: {base_url: \"http://127.0.0.1:1\"}\nredis: {embedded: true}\norgs_files: \"*.org\"\n",
		"acme.org": "id: acme\ncredential: {env: KEY_ACME}\nrun_credential: {env: KEY_RUNS}\nalerts: {webhook: {url: \"https://hooks.example\", secret: {env: CERTIFICATE}}}\n" +
			"brownouts: [{dialects: [v1], from: 2030-01-01T11:00:00Z, until: 2030-01-01T12:00:00Z}]\n" +
			"exceptions: [{id: x, policy: roles, keys: [a], until: 2030-01-01T12:00:00Z, reason: r, granted_by: ada}]\n" +
			"keys:\n  - {id: a, sha256: " + digest("key-a") + ", expires: 2030-01-01T12:00:00Z}\n" +
			"  - {id: b, digests: [{sha256: " + digest("key-b") + ", not_after: 2030-01-01T12:00:00Z}, {sha256: " + digest("key-c") + "}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values := map[string]string{"KEY_ACME": "pk-secret-acme", "KEY_RUNS": "pk-secret-runs", "CERTIFICATE": world.NewAuthority(t, "mesh", noon).PEM()}
	load := func(before *config.Loaded) *config.Loaded {
		t.Helper()
		env := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
		l, err := config.Load(filepath.Join(dir, "tollgate.yaml"), config.Sources{Env: env, Previous: before}, operator.Validator{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	told := func(l *config.Loaded, now time.Time) (ends, others int) {
		for _, w := range l.Warnings(now) {
			switch text := w.Error(); {
			case strings.Contains(text, "is in the past"), strings.Contains(text, "has expired"), strings.Contains(text, "expired at"):
				ends++
			case strings.Contains(text, "acme.org"):
				others++
			}
		}
		return ends, others
	}
	first := load(nil)
	if ends, others := told(first, noon.Add(-time.Minute)); ends != 0 || others == 0 {
		t.Errorf("%d ends and %d other warnings at first, want none and some: %v", ends, others, first.Warnings(noon))
	}
	next := load(first)
	if ends, others := told(next, noon.AddDate(0, 0, 2)); !next.Config.Org("acme").Reused || ends != 5 || others != 0 {
		t.Errorf("%d ends and %d other warnings of an unchanged file, want 5 and none: %v", ends, others, next.Warnings(noon.AddDate(0, 0, 2)))
	}
}
