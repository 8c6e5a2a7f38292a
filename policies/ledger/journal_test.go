package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// journaled gives a gateway a journal in a directory, and runs it until the returned function kills the gateway.
func (f *fleet) journaled(g *gateway, dir, name string, log *bytes.Buffer) (j *ledger.Journal, kill func()) {
	f.t.Helper()
	j, err := ledger.OpenJournal(dir, name, f.store, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		f.t.Fatal(err)
	}
	g.books.Keep(j)
	ctx, cancel := context.WithCancel(f.t.Context())
	f.t.Cleanup(cancel)
	go func() { _ = j.Run(ctx) }()
	return j, func() {
		synctest.Wait() // Run has written
		j.Close()
	}
}

// restarted is a fleet whose store is empty, after the loss of another one's.
func restarted(t *testing.T, found []ledger.PlatformResource, names ...string) *fleet {
	t.Helper()
	f := newFleet(t, names...)
	f.empty(2)
	f.found = found
	return f
}

// owners returns the owners of the resources in the ledger.
func (f *fleet) owners() map[string]string {
	f.t.Helper()
	s, err := f.store.Show(f.t.Context(), org)
	if err != nil {
		f.t.Fatal(err)
	}
	all := make(map[string]string)
	for _, r := range s.Resources {
		all[r.ID] = r.Owner.String()
	}
	return all
}

func (f *fleet) wantOwners(want map[string]string) {
	f.t.Helper()
	if got := f.owners(); !maps.Equal(got, want) {
		f.t.Errorf("owners are %v, want %v", got, want)
	}
}

func foundPod(id string) ledger.PlatformResource {
	return ledger.PlatformResource{Kind: operation.KindPod, ID: id, Name: id, Amounts: onePod, Priced: true}
}

// create makes a pod by a call of a gateway.
func (f *fleet) create(g *gateway, id string) {
	f.t.Helper()
	f.reserve(g, "h-"+id)
	f.settle(g, ledger.Settlement{Hold: "h-" + id, End: ledger.Commit, Resource: id, Amounts: onePod})
	f.found = append(f.found, foundPod(id))
}

// TestJournalOutlivesStoreAndGateways: the store and all gateways are lost together. The owners of resources and the reservations of
// calls in flight come back, and what has ended does not.
func TestJournalOutlivesStoreAndGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFleet(t, "a")
		a := f.gateways[0]
		_, kill := f.journaled(a, dir, "owners", new(bytes.Buffer))
		f.run(a)
		f.create(a, "old")
		f.create(a, "deleted")
		time.Sleep(time.Minute) // the image has both
		f.reserve(a, "h-delete")
		f.settle(a, ledger.Settlement{Hold: "h-delete", End: ledger.Commit, Resource: "deleted", Gone: true})
		f.create(a, "new")
		f.reserve(a, "in flight")
		f.found = []ledger.PlatformResource{foundPod("old"), foundPod("new"), foundPod("stranger")}
		kill()
		again := restarted(t, f.found, "a")
		again.journaled(again.gateways[0], dir, "owners", new(bytes.Buffer))
		if err := again.rebuild(t.Context(), again.gateways[0]); err != nil {
			t.Fatal(err)
		}
		again.wantOwners(map[string]string{"old": owner.String(), "new": owner.String(), "stranger": "organisation"})
		again.want("in flight")
		if got := again.reserve(again.gateways[0], "more"); got != ledger.Refused {
			t.Errorf("a call above the budget of three GPUs = %d, want it refused", got)
		}
	})
}

// TestYoungGatewayOffersItsJournal: the store comes back empty when the gateways are seconds old, and the one that knows an owner
// starts last, after the other has completed the ledger.
func TestYoungGatewayOffersItsJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := []string{t.TempDir(), t.TempDir()}
		f := newFleet(t, "a", "b")
		a := f.gateways[0]
		_, kill := f.journaled(a, dirs[0], "owners", new(bytes.Buffer))
		f.run(a)
		f.create(a, "p1")
		kill()
		again := restarted(t, f.found, "a", "b")
		again.alive = []string{"b"}
		a, b := again.gateways[0], again.gateways[1]
		b.books.Hear(time.Now())
		again.journaled(b, dirs[1], "owners", new(bytes.Buffer))
		if err := again.rebuild(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		again.wantOwners(map[string]string{"p1": "organisation"})
		again.journaled(a, dirs[0], "owners", new(bytes.Buffer))
		again.run(a, b)
		again.wantOwners(map[string]string{"p1": owner.String()})
	})
}

// TestStaleJournalDoesNoHarm: a journal of long ago gives no resource to a former owner, returns nothing that has ended, and blocks no
// budget. The journals of other organisations and installations are left alone.
func TestStaleJournalDoesNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale, dir := t.TempDir(), t.TempDir()
		f := newFleet(t, "a", "b")
		a, b := f.gateways[0], f.gateways[1]
		_, killStale := f.journaled(a, stale, "owners", new(bytes.Buffer))
		_, kill := f.journaled(b, dir, "owners", new(bytes.Buffer))
		f.run(a, b)
		f.create(a, "p1")
		f.create(a, "ended")
		f.reserve(a, "long ago")
		time.Sleep(time.Second)
		killStale()
		a.dead.Store(true)
		time.Sleep(time.Hour)
		s, err := f.store.Show(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		other := ledger.Owner{Team: "vision", Key: "bob"}
		for _, r := range s.Resources {
			x := &ledger.Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Amounts: r.Amounts, Owner: &other}
			if r.ID == "ended" {
				x.Owner, x.Gone = nil, true
			}
			if made, err := ledger.Adjust(t.Context(), b.Store, org, x); err != nil || !made {
				t.Fatal(made, err)
			}
		}
		time.Sleep(time.Second)
		kill()
		again := restarted(t, []ledger.PlatformResource{foundPod("p1")}, "a", "b")
		a, b = again.gateways[0], again.gateways[1]
		again.journaled(a, stale, "owners", new(bytes.Buffer))
		again.journaled(b, dir, "owners", new(bytes.Buffer))
		again.run(a) // it offers first
		if err := again.rebuild(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		again.wantOwners(map[string]string{"p1": other.String()})
		again.want()
		foreign := restarted(t, []ledger.PlatformResource{foundPod("p1")}, "c")
		c := foreign.gateways[0]
		foreign.journaled(c, dir, "another installation", new(bytes.Buffer))
		if got := c.books.Watch.Owners(org, []string{"p1"}); got[0] != (ledger.Owner{}) {
			t.Errorf("the journal of another installation gives %v", got)
		}
		if got := b.books.Watch.Owners("globex", []string{"p1"}); got[0] != (ledger.Owner{}) {
			t.Errorf("another organisation has %v", got)
		}
	})
}

// TestJournalIsReadAsFarAsItIsWhole: a torn line and garbage are skipped, and reported.
func TestJournalIsReadAsFarAsItIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFleet(t, "a")
		j, kill := f.journaled(f.gateways[0], dir, "owners", new(bytes.Buffer))
		f.run(f.gateways[0])
		f.create(f.gateways[0], "p1")
		f.create(f.gateways[0], "p2")
		kill()
		text, err := os.ReadFile(j.Path())
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(j.Path()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v (%v), want 0600", info.Mode(), err)
		}
		text = append([]byte("not JSON\n"), append(text, `{"org":"acme","resource":"p1"`...)...)
		if err := os.WriteFile(j.Path(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		again := restarted(t, f.found, "a")
		again.journaled(again.gateways[0], dir, "owners", &log)
		if got := again.gateways[0].books.Watch.Owners(org, []string{"p1", "p2"}); !slices.Equal(got, []ledger.Owner{owner, owner}) {
			t.Errorf("owners are %v, want two of %v", got, owner)
		}
		if !strings.Contains(log.String(), "lines=2") {
			t.Errorf("the log does not tell of two lines: %s", log.String())
		}
	})
}

// TestGatewaysShareADirectory: each has a journal of its own, and the next one to start takes over those of gateways that have ended.
func TestGatewaysShareADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFleet(t, "a", "b")
		a, b := f.gateways[0], f.gateways[1]
		ja, killA := f.journaled(a, dir, "owners", new(bytes.Buffer))
		jb, killB := f.journaled(b, dir, "owners", new(bytes.Buffer))
		if ja.Path() == jb.Path() {
			t.Fatalf("both write %s", ja.Path())
		}
		f.create(a, "p1") // no image has been read: each knows its own
		f.create(b, "p2")
		killB()
		killA()
		again := restarted(t, f.found, "c")
		again.journaled(again.gateways[0], dir, "owners", new(bytes.Buffer))
		if err := again.rebuild(t.Context(), again.gateways[0]); err != nil {
			t.Fatal(err)
		}
		again.wantOwners(map[string]string{"p1": owner.String(), "p2": owner.String()})
		if left, err := filepath.Glob(filepath.Join(dir, "*.jsonl")); err != nil || len(left) != 1 {
			t.Errorf("the directory has %v (%v), want one journal", left, err)
		}
	})
}

// TestJournalOnAFullDisk: a write that fails is reported and logged once, refuses no call, and is made up for.
func TestJournalOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skipf("this system has no /dev/full: %v", err)
		}
		dir := t.TempDir()
		f := newFleet(t, "a")
		var log bytes.Buffer
		j, kill := f.journaled(f.gateways[0], dir, "owners", &log)
		j.Fail(full)
		f.create(f.gateways[0], "p1")
		time.Sleep(100 * time.Millisecond)
		if !j.Broken() {
			t.Error("the journal is not broken on a full disk")
		}
		f.create(f.gateways[0], "p2")
		time.Sleep(2 * time.Second)
		if j.Broken() {
			t.Error("the journal is still broken")
		}
		kill()
		if got := log.String(); strings.Count(got, "cannot write the owner journal") != 1 || strings.Count(got, "owner journal is writable again") != 1 {
			t.Errorf("log: %s", got)
		}
		again := restarted(t, f.found, "a")
		again.journaled(again.gateways[0], dir, "owners", new(bytes.Buffer))
		if got := again.gateways[0].books.Watch.Owners(org, []string{"p1", "p2"}); !slices.Equal(got, []ledger.Owner{owner, owner}) {
			t.Errorf("owners are %v, want two of %v", got, owner)
		}
	})
}

// TestJournalStaysSmall: a file that has grown is replaced by its content.
func TestJournalStaysSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFleet(t, "a")
		a := f.gateways[0]
		j, _ := f.journaled(a, dir, "owners", new(bytes.Buffer))
		written := 0
		for i := range 6000 {
			id := fmt.Sprintf("hold-%d", i)
			f.reserve(a, id)
			f.settle(a, ledger.Settlement{Hold: id, End: ledger.Release})
			if i%100 == 0 {
				synctest.Wait()
				info, err := os.Stat(j.Path())
				if err != nil {
					t.Fatal(err)
				}
				written = max(written, int(info.Size()))
			}
		}
		if written == 0 || written > 1<<20+64<<10 {
			t.Errorf("the file had up to %d bytes, want at most about 1 MiB", written)
		}
	})
}
