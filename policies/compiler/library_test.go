package compiler

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/tollgate-dev/tollgate/policies/rego"
)

// TestFilesAreParsedWhenNeeded: a policy needs its own file and those of the packages it
// imports, and no other is parsed for it.
func TestFilesAreParsedWhenNeeded(t *testing.T) {
	files := fstest.MapFS{"broken.rego": {Data: []byte("package")}}
	for _, name := range []string{"cloud_tier.rego", "support/gpu.rego", "support/value.rego"} {
		text, err := rego.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	lib, err := readLibrary(files)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"broken", "cloud_tier"}; !slices.Equal(lib.names, want) {
		t.Errorf("got the names %v, want %v", lib.names, want)
	}
	got, want := lib.closure([]string{"cloud_tier"}), []string{"rego/cloud_tier.rego", "rego/support/gpu.rego", "rego/support/value.rego"}
	if !slices.Equal(got, want) {
		t.Errorf("cloud_tier needs %v, want %v", got, want)
	}
	if p := lib.policy("cloud_tier"); p == nil || p.Title == "" {
		t.Errorf("cloud_tier is %v, want its description", p)
	}
	if lib.policy("support/gpu") != nil || lib.policy("unknown") != nil {
		t.Error("what is no policy was found as one")
	}
	defer func() {
		if recover() == nil {
			t.Error("a broken file was parsed")
		}
	}()
	lib.policy("broken")
}
