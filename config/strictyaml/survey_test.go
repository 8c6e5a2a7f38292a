package strictyaml_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

func TestSurveyKeepsWhatCouldBeRead(t *testing.T) {
	t.Parallel()
	got := sample{Listen: "default", Count: 7, Tags: []string{"default"}}
	_, err := strictyaml.DecodePartial("t", []byte("listen: a\ncount: x\nnope: 1\norgs: [{id: acme}, {id: 1}]\n"), &got)
	faults, ok := errors.AsType[strictyaml.Errors](err)
	if !ok || len(faults) != 3 {
		t.Fatalf("faults are %v, want three", err)
	}
	want := sample{Listen: "a", Count: 7, Tags: []string{"default"}, Orgs: []org{{ID: "acme"}, {}}}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestErrorsCoversWhatMayFollow(t *testing.T) {
	t.Parallel()
	faults := strictyaml.Errors{{Path: "orgs[1].keys"}, {Path: "listen"}}
	for path, want := range map[string]bool{
		"listen": true, "listening": false, "orgs[1].keys[0].sha256": true, "orgs[1].keys": true, "orgs[1]": true, "orgs": true, "": true,
		"orgs[0].keys": false, "orgs[1].keysmith": false, "orgs[10].keys": false, "admin.listen": false,
	} {
		if got := faults.Covers(path); got != want {
			t.Errorf("Covers(%q) = %t, want %t", path, got, want)
		}
	}
	if whole := (strictyaml.Errors{{Message: "the file is empty"}}); !whole.Covers("orgs[0]") {
		t.Error("a fault of the whole file does not cover a path")
	}
}
