package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// fact is a replicated record.
type fact struct {
	ID       string    `json:"id"`
	Revision int       `json:"revision"`
	Until    time.Time `json:"until,omitzero"`
}

func (f *fact) RecordID() string      { return f.ID }
func (f *fact) Later(than *fact) bool { return f.Revision > than.Revision }
func (f *fact) Ends() time.Time       { return f.Until }

// copies are replicas of the same records on one clock.
type copies struct {
	client  redis.Cmdable
	now     time.Time
	orgs    []string
	dropped []string
	always  bool
}

func newCopies(client redis.Cmdable) *copies {
	return &copies{client: client, now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), orgs: []string{"acme", "globex"}}
}

func (c *copies) open() *store.Replica[*fact] {
	return store.NewReplica(c.client, "p:", store.ReplicaConfig[*fact]{
		Name: "facts", Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return c.now }, Orgs: func() []string { return c.orgs }, MaxRecords: 300,
		AlwaysRead: c.always,
		OnRemove: func(_ context.Context, org, id string) error {
			c.dropped = append(c.dropped, org+"/"+id)
			return nil
		},
	})
}

// silently writes a record without an announcement.
func (c *copies) silently(t *testing.T, org, id, text string) {
	t.Helper()
	one := json.RawMessage(text)
	w := store.Write[json.RawMessage]{Record: &one, Version: true, Indexes: []store.Index{{Name: "all"}}}
	s := store.New[json.RawMessage](c.client, "p:")
	e, err := s.Get(t.Context(), org, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, done, err := s.Swap(t.Context(), org, e, w); err != nil || !done {
		t.Fatal(done, err)
	}
}

func swap(t *testing.T, r *store.Replica[*fact], org, id string, revision int) {
	t.Helper()
	if done, err := r.Swap(t.Context(), org, r.Of(org).Get(id), &fact{ID: id, Revision: revision}); err != nil || !done {
		t.Fatal(id, done, err)
	}
}

// refresh refreshes a replica, and wants changes of records of acme.
func refresh(t *testing.T, r *store.Replica[*fact], when string, want ...string) {
	t.Helper()
	before := r.Of("acme")
	_, err := r.Refresh(t.Context())
	if ids := before.Diff(r.Of("acme")); err != nil || !cmp.Equal(ids, want) {
		t.Errorf("%s: %v, %v, want %v", when, ids, err, want)
	}
}

// A change is read that is made some seconds after it was announced, and one without any announcement within a minute: so a gateway that
// died between the two, or a store that lost the announcement, hides no change. Fresh reads it at once.
func TestReplicaReadsChanges(t *testing.T) {
	redistest.Each(t, func(t *testing.T, c redistest.Redis) {
		all := newCopies(c.Client)
		here, there := all.open(), all.open()
		refresh(t, there, "at the start")
		swap(t, here, "acme", "first", 1)
		refresh(t, there, "a change with its announcement", "first")
		all.now = all.now.Add(9 * time.Second)
		all.silently(t, "acme", "late", `{"id":"late"}`)
		refresh(t, there, "a change some seconds after an announcement", "late")
		all.now = all.now.Add(10 * time.Second)
		refresh(t, there, "when nothing was announced for long")
		all.silently(t, "acme", "silent", `{"id":"silent"}`)
		refresh(t, there, "a change that was not announced")
		all.now = all.now.Add(time.Minute)
		refresh(t, there, "a minute later", "silent")
		all.silently(t, "acme", "asked", `{"id":"asked"}`)
		if changed, err := there.RefreshOrg(t.Context(), "acme"); !changed || err != nil || there.Of("acme").Get("asked") == nil {
			t.Errorf("Fresh: %t, %v, want the change", changed, err)
		}
	})
}

// A replica that has missed announcements, or whose store has lost them, reads every organisation.
func TestReplicaMissesNoAnnouncement(t *testing.T) {
	redistest.Each(t, func(t *testing.T, c redistest.Redis) {
		all := newCopies(c.Client)
		here, there := all.open(), all.open()
		swap(t, here, "globex", "a", 1)
		refresh(t, there, "at the start")
		all.now = all.now.Add(11 * time.Second)
		refresh(t, there, "when nothing was announced for long")
		swap(t, here, "acme", "missed", 1)
		for i := range 256 {
			swap(t, here, "globex", fmt.Sprint(i), 1)
		}
		if n := c.Client.XLen(t.Context(), "p:{news}").Val(); n != 256 {
			t.Errorf("%d announcements are kept, want 256", n)
		}
		refresh(t, there, "after more announcements than are kept", "missed")
		all.now = all.now.Add(11 * time.Second)
		refresh(t, there, "when nothing was announced for long")
		swap(t, here, "acme", "lost", 1)
		if err := c.Client.Del(t.Context(), "p:{news}").Err(); err != nil {
			t.Fatal(err)
		}
		refresh(t, there, "after the announcements were lost", "lost")
	})
}

// A refresh in which nothing is announced asks for one value, however many organisations there are.
func TestQuietRefreshIsOneTrip(t *testing.T) {
	client := redistest.Client(t, redistest.Start(t))
	var asked commands
	client.AddHook(&asked)
	all := newCopies(client)
	for i := range 1000 {
		all.orgs = append(all.orgs, fmt.Sprint("org-", i))
	}
	r := all.open()
	refresh(t, r, "at the start")
	all.now = all.now.Add(time.Second)
	asked = 0
	refresh(t, r, "a second later")
	if asked != 1 {
		t.Errorf("%d commands, want 1", asked)
	}
}

// Records that the store has lost are written back, the later of two states of a record wins, and an ended record is dropped everywhere.
func TestReplicaWritesBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, c redistest.Redis) {
		all := newCopies(c.Client)
		here, there := all.open(), all.open()
		swap(t, here, "acme", "old", 1)
		refresh(t, there, "at the start", "old")
		swap(t, here, "acme", "old", 2)
		swap(t, here, "acme", "lost", 1)
		if done, err := here.Swap(t.Context(), "acme", nil, &fact{ID: "ended", Until: all.now.Add(time.Minute)}); !done || err != nil {
			t.Fatal(done, err)
		}
		c.Empty(t)
		all.now = all.now.Add(2 * time.Minute)
		refresh(t, there, "while the store is empty")
		refresh(t, here, "after the store has lost the latest changes", "ended")
		all.now = all.now.Add(2 * time.Minute)
		refresh(t, there, "after the latest changes were written back", "lost", "old")
		for name, r := range map[string]*store.Replica[*fact]{"here": here, "there": there} {
			if list := r.Of("acme").All(); len(list) != 2 || list[0].ID != "lost" || list[1].Revision != 2 {
				t.Errorf("%s: %v, want the latest states", name, list)
			}
		}
		if diff := cmp.Diff([]string{"acme/ended"}, all.dropped); diff != "" {
			t.Errorf("dropped (-want +got):\n%s", diff)
		}
	})
}

// A record is written back though the store loses everything before the gateway that made it has read an announcement.
func TestReplicaWritesBackItsOwn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, c redistest.Redis) {
		all := newCopies(c.Client)
		here, there := all.open(), all.open()
		if _, err := here.RefreshOrg(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		swap(t, here, "acme", "a", 1)
		c.Empty(t)
		refresh(t, here, "after the loss")
		refresh(t, there, "at another gateway", "a")
	})
}

// A loss is found by the next refresh though no announcement was ever kept.
func TestReplicaFindsALossWithoutAnnouncements(t *testing.T) {
	redistest.Each(t, func(t *testing.T, c redistest.Redis) {
		all := newCopies(c.Client)
		all.silently(t, "acme", "a", `{"id":"a"}`)
		here, there := all.open(), all.open()
		refresh(t, here, "at the start", "a")
		c.Empty(t)
		all.now = all.now.Add(time.Second)
		refresh(t, here, "after the loss")
		refresh(t, there, "at another gateway", "a")
	})
}

// A replica that always reads every organisation finds a loss of the records that leaves the announcements.
func TestReplicaAlwaysFindsALoss(t *testing.T) {
	all := newCopies(redistest.Client(t, redistest.Start(t)))
	all.always = true
	here, there := all.open(), all.open()
	swap(t, here, "acme", "a", 1)
	refresh(t, here, "at the start")
	all.now = all.now.Add(11 * time.Second)
	refresh(t, here, "when nothing was announced for long")
	if err := all.client.Del(t.Context(), "p:{acme}:a", "p:{acme}#", "p:{acme}#all", "p:{acme}#changes").Err(); err != nil {
		t.Fatal(err)
	}
	all.now = all.now.Add(time.Second)
	refresh(t, here, "after the loss")
	refresh(t, there, "at another gateway", "a")
}

// A second loss is found though it comes right after the records were written back.
func TestReplicaFindsASecondLoss(t *testing.T) {
	redistest.Each(t, func(t *testing.T, c redistest.Redis) {
		all := newCopies(c.Client)
		here, there := all.open(), all.open()
		swap(t, here, "acme", "a", 1)
		for _, when := range []string{"after a loss", "after a second loss"} {
			c.Empty(t)
			refresh(t, here, when)
		}
		refresh(t, there, "at another gateway", "a")
	})
}

// Where records cannot be written back, the others of the organisation and those of other organisations are read. The next refresh
// tries again.
func TestReplicaReadsWhatItCannotWriteBack(t *testing.T) {
	addr := redistest.Start(t)
	client := redistest.Client(t, addr)
	refused := refusal("p:{acme}:lost")
	client.AddHook(&refused)
	hers, his := newCopies(client), newCopies(redistest.Client(t, addr))
	here, there := hers.open(), his.open()
	his.silently(t, "acme", "lost", `{"id":"lost"}`)
	refresh(t, here, "at the start", "lost")
	if err := his.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	swap(t, there, "acme", "new", 1)
	swap(t, there, "globex", "new", 1)
	for range 2 {
		if _, err := here.Refresh(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("with a failing write: %v, want ErrUnavailable", err)
		}
	}
	if got := here.Of("acme").All(); len(got) != 2 || here.Of("globex").Get("new") == nil {
		t.Errorf("with a failing write: %v and %v, want all records", got, here.Of("globex").All())
	}
	refused = ""
	refresh(t, here, "when writes succeed")
	refresh(t, there, "at another gateway", "lost")
}

// A lost record for which the store has no room stays in force, and other records are read.
func TestReplicaKeepsALostRecordThatHasNoRoom(t *testing.T) {
	all := newCopies(redistest.Client(t, redistest.Start(t)))
	here, there := all.open(), all.open()
	all.silently(t, "acme", "lost", `{"id":"lost"}`)
	refresh(t, here, "at the start", "lost")
	if err := all.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		swap(t, there, "acme", fmt.Sprint(i), 1)
	}
	swap(t, there, "globex", "new", 1)
	if _, err := here.Refresh(t.Context()); err != nil || len(here.Of("acme").All()) != 301 || here.Of("globex").Get("new") == nil {
		t.Errorf("%v, %d records of acme, %v of globex, want all", err, len(here.Of("acme").All()), here.Of("globex").All())
	}
	swap(t, there, "acme", "7", 2)
	refresh(t, here, "after another change", "7")
}

// An ended record that the store keeps, because it was written without its end, is deleted when it is read, and its ID is free again.
func TestReplicaDeletesEndedRecords(t *testing.T) {
	redistest.Each(t, func(t *testing.T, c redistest.Redis) {
		all := newCopies(c.Client)
		all.silently(t, "acme", "ended", `{"id":"ended","until":"2001-01-01T00:00:00Z"}`)
		all.silently(t, "acme", "kept", `{"id":"kept"}`)
		r := all.open()
		refresh(t, r, "at the start", "kept")
		all.silently(t, "acme", "changed", `{"id":"changed","until":"2001-01-01T00:00:00Z"}`)
		if _, err := r.RefreshOrg(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		swap(t, r, "acme", "ended", 2)
		swap(t, r, "acme", "changed", 2)
	})
}

// A gateway whose clock is fast deletes no record that has not ended by the store's clock.
func TestReplicaLeavesRecordsThatHaveNotEnded(t *testing.T) {
	all := newCopies(redistest.Client(t, redistest.Start(t)))
	all.silently(t, "acme", "a", `{"id":"a","until":"2201-01-01T00:00:00Z"}`)
	all.now = time.Date(2202, 1, 1, 0, 0, 0, 0, time.UTC)
	refresh(t, all.open(), "with a fast clock")
	all.now = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	refresh(t, all.open(), "with another clock", "a")
}

// Of two gateways that change a record at once, one succeeds.
func TestReplicaSwapsWhatItKnows(t *testing.T) {
	all := newCopies(redistest.Client(t, redistest.Start(t)))
	here, there := all.open(), all.open()
	swap(t, here, "acme", "a", 1)
	if done, err := there.Swap(t.Context(), "acme", nil, &fact{ID: "a", Revision: 1}); done || err != nil {
		t.Errorf("a swap without knowledge: %t, %v, want no change", done, err)
	}
	refresh(t, there, "afterwards", "a")
	swap(t, there, "acme", "a", 2)
	refresh(t, here, "at the first", "a")
	if got := here.Of("acme").Get("a").Revision; got != 2 {
		t.Errorf("revision %d, want 2", got)
	}
}

// Of two changes in one gateway that replace the same record, one succeeds, whichever revision the other has.
func TestReplicaSwapsWhatWasRead(t *testing.T) {
	all := newCopies(redistest.Client(t, redistest.Start(t)))
	r := all.open()
	var read *fact
	for _, revision := range []int{1, 2} {
		swap(t, r, "acme", "a", revision)
		for _, other := range []int{revision, revision + 1} {
			if done, err := r.Swap(t.Context(), "acme", read, &fact{ID: "a", Revision: other, Until: all.now.Add(time.Hour)}); done || err != nil {
				t.Errorf("change to revision %d in place of %+v: %t, %v, want no change", other, read, done, err)
			}
		}
		if read = r.Of("acme").Get("a"); read.Revision != revision || !read.Until.IsZero() {
			t.Errorf("%+v, want the first change to revision %d", read, revision)
		}
	}
}

// An organisation has no more records than it may.
func TestReplicaIsBounded(t *testing.T) {
	all := newCopies(redistest.Client(t, redistest.Start(t)))
	r := all.open()
	for i := range 300 {
		swap(t, r, "acme", fmt.Sprint(i), 1)
	}
	if _, err := r.Swap(t.Context(), "acme", nil, &fact{ID: "more"}); !errors.Is(err, store.ErrFull) {
		t.Errorf("one more: %v, want ErrFull", err)
	}
	swap(t, r, "acme", "7", 2)
}

// A record that cannot be read is left out, and stays in the store for a gateway that can read it.
func TestReplicaLeavesOutUnreadableRecords(t *testing.T) {
	all := newCopies(redistest.Client(t, redistest.Start(t)))
	all.silently(t, "acme", "a", `{"id":"a","revision":"one"}`)
	all.silently(t, "acme", "b", `{"id":"other"}`)
	all.silently(t, "acme", "null", `null`)
	all.silently(t, "acme", "c", `{"id":"c"}`)
	r := all.open()
	refresh(t, r, "at the start", "c")
	if n := all.client.ZCard(t.Context(), "p:{acme}#all").Val(); n != 4 {
		t.Errorf("%d records are stored, want 4", n)
	}
}

// Without the store, the first refresh and the first that succeeds are changes, because it matters to callers whether records were ever read.
func TestReplicaWithoutStore(t *testing.T) {
	all := newCopies(redistest.Away(t))
	r := all.open()
	for _, want := range []bool{true, false} {
		if changed, err := r.Refresh(t.Context()); changed != want || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Refresh: %t, %v, want %t and ErrUnavailable", changed, err, want)
		}
	}
	if _, err := r.Swap(t.Context(), "acme", nil, &fact{ID: "a"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Swap: %v, want ErrUnavailable", err)
	}
	if good, err := r.State(); !good.IsZero() || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("State: %s, %v", good, err)
	}
}

// commands counts the commands of a client.
type commands int

func (*commands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		*c++
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		*c += commands(len(cmds))
		return next(ctx, cmds)
	}
}

// refusal fails the commands that write a key.
type refusal string

func (*refusal) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *refusal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if *f != "" && cmd.Name() == "evalsha" && slices.Contains(cmd.Args(), any(string(*f))) {
			err := errors.New("refused")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (*refusal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
