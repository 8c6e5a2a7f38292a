package audit_test

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// The log names the maker of each resource, and the owner that an admin gave it; failed creates, resources of
// others and mere changes say nothing.
func TestMakers(t *testing.T) {
	file := logfile.File{Path: filepath.Join(t.TempDir(), "audit.log")}
	l, err := audit.Open(&settings.Audit{File: &file}, at, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]audit.Record{
		{{Org: "acme", Team: "research", Key: "ann", Verb: "create", Labels: "a=b"}, {Resource: "p1", Status: http.StatusCreated}},
		{{Org: "acme", Team: "ops", Key: "bob", Verb: "create"}, {Status: http.StatusBadGateway}},
		{{Org: "other", Key: "eve", Verb: "create"}, {Resource: "p2", Status: http.StatusCreated}},
		{{Org: "acme", Key: "bob", Verb: "update", Resource: "p1"}, {Resource: "p1", Status: http.StatusOK}},
		{{Org: "acme", Key: "bob", Verb: "create"}, {Resource: "p3", Status: http.StatusCreated}},
		{{Who: "admin", Operation: "POST /admin/spend/adopt", Query: "id=p3&key=&org=acme&team=ops"}, {Status: http.StatusOK}},
		{{Who: "admin", Operation: "POST /admin/spend/adopt", Query: "id=p1&key=&org=acme&team=ops"}, {Status: http.StatusBadRequest}},
		{{Who: "admin", Operation: "POST /admin/spend/adopt", Query: "id=p1&key=&org=other&team=ops"}, {Status: http.StatusOK}},
	} {
		seq, err := l.Intent(x[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Result(seq, x[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := audit.Creators("acme", audit.Files(&file)...)
	want := map[string]audit.Record{
		"p1": {Org: "acme", Team: "research", Key: "ann", Verb: "create", Labels: "a=b"},
		"p3": {Org: "acme", Team: "ops", Verb: "create"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Makers: %v (want-, got+):\n%s", err, diff)
	}
	if _, err := audit.Creators("acme", file.Path+".missing"); err == nil {
		t.Error("a file that is not there was read")
	}
}
