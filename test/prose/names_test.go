package prose_test

import (
	"os"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/test/prose"
)

const root = "../../"

// Every public name from before the renames exists, or the changelog has a row that leads to its successor. Every row's new name exists.
func TestRenamesAreComplete(t *testing.T) {
	t.Parallel()
	before, err := os.ReadFile("testdata/names-before.txt")
	if err != nil {
		t.Fatal(err)
	}
	now, err := prose.Current(root)
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile(root + "CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	renames := prose.Renames(string(changelog))
	for _, name := range prose.Missing(prose.Unmarshal(string(before)), now, renames) {
		t.Errorf("%s no longer exists, and CHANGELOG.md has no row for it", name)
	}
	for _, r := range prose.Unknown(now, renames) {
		t.Errorf("CHANGELOG.md: %s %s: the new name %s does not exist", r.Kind, r.Old, r.New)
	}
	for _, kind := range prose.Kinds() {
		if len(now[kind]) == 0 {
			t.Errorf("no %s found", kind)
		}
	}
}

func TestRenames(t *testing.T) {
	t.Parallel()
	renames := prose.Renames("| kind | before | now |\n| --- | --- | --- |\n| setting | `orgs[].keep`, `hops` | `orgs[].snooze`, `forwarded_hops` |\n" +
		"| command | `spend adopt` | `spend assign` |\n| member | `told` | `delivered` |\n| route | `GET /a` | `GET /b` |\n| stage | `Judge` | removed: merged |\n")
	before := prose.Names{
		"setting": {"lb.hops", "orgs[].keep", "orgs[].keep.for", "orgs[].keeper"}, "command": {"tollgate spend adopt --all"},
		"member": {"GET /a: told"}, "stage": {"Judge"}, "route": {"GET /a"},
	}
	now := prose.Names{
		"setting": {"lb.forwarded_hops", "orgs[].snooze", "orgs[].snooze.for"}, "command": {"tollgate spend assign --all"},
		"member": {"GET /b: delivered"}, "route": {"GET /b"},
	}
	if got, want := prose.Missing(before, now, renames), []string{"setting orgs[].keeper"}; !slices.Equal(got, want) {
		t.Errorf("missing %q, want %q", got, want)
	}
	renames = append(renames, prose.Rename{Kind: "metric", Old: "a", New: "b"})
	if got := prose.Unknown(now, renames); len(got) != 1 || got[0].Kind != "metric" {
		t.Errorf("unknown %v, want the metric", got)
	}
	if text := before.Marshal(); prose.Unmarshal(text).Marshal() != text {
		t.Errorf("names differ after a round trip: %s", text)
	}
}
