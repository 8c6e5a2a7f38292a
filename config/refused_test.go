package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// TestCorrectionDuringRefusal corrects a file, and files beside it, after they were read and before the rest is read again without the
// refused file: the watch sees each as a change.
func TestCorrectionDuringRefusal(t *testing.T) {
	dir, old := t.TempDir(), time.Now().Add(-time.Hour)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, old, old)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const acme = "id: acme\ncredential: {env: KEY_ACME}\nrego: own\n"
	write("tollgate.yaml", "platform: {base_url: \"http://127.0.0.1:1\"}\nredis: {embedded: true}\norgs_files: conf.d/*.yaml\norg_bounds: {credential_env: [\"KEY_{id}\"]}\n")
	write("conf.d/own/own.rego", "package policies.own\n")
	write("conf.d/acme.yaml", acme)
	load := func(before *Loaded) *Loaded {
		t.Helper()
		l, err := Load(filepath.Join(dir, "tollgate.yaml"), Sources{Env: func(name string) (string, bool) { return "pk-secret-of-" + name, true }, Previous: before}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, correct := range map[string]func(){
		"the file":      func() { write("conf.d/acme.yaml", acme+"contact: corrected\n") },
		"its directory": func() { write("conf.d/own/own.rego", "package policies.own\n\n") },
		"another file":  func() { write("conf.d/beta.yaml", "id: beta\ncredential: {env: KEY_BETA}\n") },
		"nothing":       func() {},
	} {
		write("conf.d/acme.yaml", acme)
		_ = os.Remove(filepath.Join(dir, "conf.d/beta.yaml")) // it is there once
		first := load(nil)
		write("conf.d/acme.yaml", acme+"contact: wrong\n")
		next := load(first)
		correct()
		kept, err := next.WithoutFaultyFiles(&policyconfig.Error{Org: "acme", Message: "rego_type_error"})
		if err != nil || len(kept.Config.RejectedFiles) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if seen := !kept.Inputs.current().equal(kept.Inputs); seen != (name != "nothing") {
			t.Errorf("%s: a change is seen: %t", name, seen)
		}
	}
}
