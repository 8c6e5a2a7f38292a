package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// written writes a configuration with one file of keys and returns its path.
func written(t *testing.T, keys string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tollgate.yaml": `
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    teams: [{id: research}]
    key_files: [keys.yaml]
    keys:
      - {id: first, sha256: ` + identity.DigestOf("tg_first").String() + `}
`,
		"keys.yaml": keys,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "tollgate.yaml")
}

func TestFaultsOfKeyFilesHaveTheirPlace(t *testing.T) {
	digest := identity.DigestOf("tg_live_0001").String()
	path := written(t, `- {id: a, sha256: `+digest+`, team: nobody}
- {id: first, sha256: `+identity.DigestOf("tg_live_0002").String()+`}
- id: c
- id: d
  digests:
    - {sha256: `+identity.DigestOf("tg_live_0004").String()+`, not_before: 2026-12-02T00:00:00Z, not_after: 2026-12-01T00:00:00Z}
`)
	_, err := config.Load(path, config.Sources{Env: sources(t).Env}, nil)
	faults, _ := errors.AsType[strictyaml.Errors](err)
	file := strings.TrimSuffix(path, "tollgate.yaml") + "keys.yaml"
	want := []string{
		file + `:1:1: orgs[0].keys[1].team: team "nobody" is not defined in organisation "acme"`,
		file + `:2:1: orgs[0].keys[2].id: key "first" is already defined`,
		file + `:3:1: orgs[0].keys[3]: must set either sha256 or digests`,
		file + `:4:1: orgs[0].keys[4].digests[0].not_after: must be later than not_before`,
	}
	for i, f := range faults {
		if i >= len(want) || f.Error() != want[i] {
			t.Errorf("fault %d is %s", i, f)
		}
	}
	if len(faults) != len(want) {
		t.Errorf("%d faults, want %d:\n%v", len(faults), len(want), err)
	}
}

func TestAMissingKeyFileIsAFault(t *testing.T) {
	path := written(t, "[]\n")
	if err := os.Remove(strings.TrimSuffix(path, "tollgate.yaml") + "keys.yaml"); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path, config.Sources{Env: sources(t).Env}, nil); err == nil || !strings.Contains(err.Error(), "tollgate.yaml:8:17: orgs[0].key_files[0]: open ") {
		t.Errorf("err = %v, want the place that names the file", err)
	}
}

// A file of keys is part of the configuration: it has a part in the revision, and is
// among the watched inputs.
func TestKeyFilesAreInputs(t *testing.T) {
	path := written(t, "- {id: a, sha256: "+identity.DigestOf("tg_live_0001").String()+"}\n")
	before, err := config.Load(path, config.Sources{Env: sources(t).Env}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.TrimSuffix(path, "tollgate.yaml")+"keys.yaml", []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := config.Load(path, config.Sources{Env: sources(t).Env}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Config.Orgs[0].Keys) != 2 || len(after.Config.Orgs[0].Keys) != 1 {
		t.Errorf("%d keys, then %d, want 2, then 1", len(before.Config.Orgs[0].Keys), len(after.Config.Orgs[0].Keys))
	}
	if before.Config.Revision == after.Config.Revision {
		t.Errorf("both revisions are %s", after.Config.Revision)
	}
}
