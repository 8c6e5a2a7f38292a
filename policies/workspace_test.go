package policies_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/load"
)

// TestWorkspaceModules: the library is there, and never the workspace's own.
func TestWorkspaceModules(t *testing.T) {
	w, err := load.ReadWorkspace(ownDirectory(t))
	if err == nil || !strings.Contains(err.Error(), "rules_test.rego:1:1") {
		t.Errorf("got %v, want the fault of the test that is no Rego", err)
	}
	modules, err := w.Modules()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for file, m := range modules {
		if w.IsOwn(file) {
			own++
		} else if !strings.HasPrefix(m.Package.Path.String(), "data.tollgate.") {
			t.Errorf("%s is neither the workspace's nor the library's", file)
		}
	}
	if own != 2 || own != len(w.Sources()) || modules["rego/support/testing_test.rego"] == nil {
		t.Errorf("got %d own files of %d, %d sources; want 2 beside the library and its inputs for tests", own, len(modules), len(w.Sources()))
	}
}
