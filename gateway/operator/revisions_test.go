package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// configured is a configuration of a revision with an address.
func configured(revision, listen string) *settings.Config {
	cfg := &settings.Config{Revision: revision, Listen: listen, Orgs: []settings.Org{{ID: "acme", Credential: strictyaml.NewSecret("rpa_hush")}}}
	return cfg
}

// TestRevisionsAndTheirDifferences: every configuration is listed once for each time it was in force, with the difference to the current one and
// without secrets.
func TestRevisionsAndTheirDifferences(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	now := new(view.Current)
	r := &operator.Revisions{
		Journal: operator.NewJournal(redistest.Once(t, server.Addr()), ""), Gateway: "blue", Version: "v1",
		Current: now,
	}
	keep := func(cfg *settings.Config) {
		t.Helper()
		now.Set(&view.View{Config: cfg, Loaded: time.Unix(1e9, 0)})
		for range 2 { // another gateway loads it, too
			if err := r.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	keep(configured("r1", ":1"))
	if d, err := r.Diff(t.Context(), "", ""); err != nil || d.From != "r1" || d.Diff != "" {
		t.Errorf("without a revision before: %+v (%v), want no difference", d, err)
	}
	if _, err := r.Diff(t.Context(), "", "r9"); err == nil || !strings.Contains(err.Error(), "unknown or expired revision r9") {
		t.Errorf("with an unknown revision: %v", err)
	}
	keep(configured("r2", ":2"))
	keep(configured("r1", ":1"))
	list, err := r.List(t.Context())
	var got []string
	for _, one := range list {
		got = append(got, one.Revision)
	}
	if diff := cmp.Diff([]string{"r1", "r2", "r1"}, got); diff != "" || err != nil {
		t.Errorf("revisions (%v, -want +got):\n%s", err, diff)
	}
	d, err := r.Diff(t.Context(), "", "")
	if err != nil || d.From != "r2" || d.To != "r1" || !strings.Contains(d.Diff, "\n-listen: ") || !strings.Contains(d.Diff, "\n+listen: ") {
		t.Errorf("to the one before: %+v (%v)", d, err)
	}
	for _, key := range server.Keys() {
		if text := server.Dump(); strings.Contains(text, "rpa_hush") {
			t.Errorf("a secret is kept under %s", key)
		}
	}
	if d, err = r.Diff(t.Context(), "acme", ""); err != nil || d.Diff != "" || d.From != "r2" {
		t.Errorf("of an organisation to the one before: %+v (%v), want no difference", d, err)
	}
	now.Set(&view.View{Config: &settings.Config{Revision: "r3", Orgs: []settings.Org{{ID: "12"}, {ID: "acme"}, {ID: "zeta"}}}})
	d, err = r.Diff(t.Context(), "12", "r1")
	if want := "--- r1\n+++ r3\n@@ -0,0 +1,"; err != nil || !strings.HasPrefix(strings.TrimPrefix(d.Diff, "diff r1 r3\n"), want) {
		t.Errorf("of a new organisation: %+v (%v), want %q", d, err, want)
	}
	now.Set(&view.View{Config: configured("r1", ":1"), Loaded: time.Unix(1e9, 0)})
	if _, err = r.Diff(t.Context(), "globex", ""); !errors.Is(err, adminapi.ErrUnknownOrg) {
		t.Errorf("of an unknown organisation: %v", err)
	}
	r.File = func() (*settings.Config, error) { return configured("", ":3"), nil }
	if d, err = r.Diff(t.Context(), "", operator.AgainstFile); err != nil || d.From != "r1" || !strings.Contains(d.Diff, "\n+listen: ") || strings.Contains(d.Diff, "hush") {
		t.Errorf("to the file: %+v (%v)", d, err)
	}
	if d, err = r.Diff(t.Context(), "acme", operator.AgainstFile); err != nil || d.Diff != "" {
		t.Errorf("of an organisation to the file: %+v (%v), want no difference", d, err)
	}
	r.File = func() (*settings.Config, error) { return nil, errors.New("tollgate.yaml:3: limit: unknown") }
	if d, err = r.Diff(t.Context(), "", operator.AgainstFile); err != nil || d.Fault == "" {
		t.Errorf("to a file with a fault: %+v (%v)", d, err)
	}
	for i := range 60 {
		keep(configured(fmt.Sprint("r", 10+i), ":1"))
	}
	if keys := len(server.Keys()); keys > 51 {
		t.Errorf("%d keys of 60 revisions, want the list and 50", keys)
	}
}
