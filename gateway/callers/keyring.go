package callers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

const (
	// keyPoll is how often a gateway looks for changes of keys by others.
	keyPoll = time.Second
	// keyRetention is how long a key is remembered that was revoked or has expired.
	keyRetention = 30 * 24 * time.Hour
)

// keyring is the keys made at run time, as this gateway knows them, and the last uses of all keys.
type keyring struct {
	*store.Replica[*runtimeKey]
	uses
}

// newKeyring returns the keys that are kept below a prefix.
func newKeyring(prefix settings.Prefix, deps *Deps) *keyring {
	k := &keyring{uses: uses{hashes: store.Hashes{Client: deps.Redis, Prefix: prefix.Keys()}}}
	k.Replica = store.NewReplica(deps.Redis, prefix.Keys(), store.ReplicaConfig[*runtimeKey]{
		Name: "keys", Logger: deps.Logger, Now: deps.Now, Orgs: func() []string { return orgsOf(deps.Config()) }, MaxRecords: maxKeys,
		OnAdd:    func(org string, m *runtimeKey) { m.Used = &k.usage(org, m.ID).seen },
		OnRemove: k.forget,
	})
	return k
}

// uses are the last uses of keys: those that this gateway has seen, and those that the store has from all gateways. The zero value of used
// has none.
type uses struct {
	hashes store.Hashes // field ID: when the key was last used, Unix seconds
	used   sync.Map     // ORG/ID to *keyUse
}

// keyUse is the last use of a key, and the last one stored, in Unix seconds.
type keyUse struct{ seen, stored atomic.Int64 }

// usage returns where the use of a key is noted.
func (u *uses) usage(org, id string) *keyUse {
	if use, ok := u.used.Load(org + "/" + id); ok {
		return use.(*keyUse)
	}
	use, _ := u.used.LoadOrStore(org+"/"+id, new(keyUse))
	return use.(*keyUse)
}

// usesOf names the uses of the keys of an organisation.
func usesOf(org string) string { return "{" + org + "}#used" }

// forget drops the uses of a key that is gone.
func (u *uses) forget(ctx context.Context, org, id string) error {
	u.used.Delete(org + "/" + id)
	return u.hashes.Delete(ctx, usesOf(org), id)
}

// flush writes the uses that the store does not have yet. After an outage it may have later ones from other gateways.
func (u *uses) flush(ctx context.Context) error {
	seen := make(map[string]map[string]int64)
	for name, use := range u.used.Range {
		if at := use.(*keyUse).seen.Load(); at > use.(*keyUse).stored.Load() {
			org, id, _ := strings.Cut(name.(string), "/")
			if seen[org] == nil {
				seen[org] = make(map[string]int64)
			}
			seen[org][id] = at
		}
	}
	for org, fields := range seen {
		if err := u.hashes.SetMax(ctx, usesOf(org), fields); err != nil {
			return err
		}
		for id, at := range fields {
			u.usage(org, id).stored.Store(at)
		}
	}
	return nil
}

// lastUsed returns when keys of an organisation were last used, by ID: the later of the store's times, if it answers, and this gateway's.
func (u *uses) lastUsed(ctx context.Context, org string) map[string]time.Time {
	used := make(map[string]time.Time)
	if found, err := u.hashes.Get(ctx, usesOf(org)); err == nil {
		for id, text := range found[0] {
			if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
				used[id] = time.Unix(seconds, 0).UTC()
			}
		}
	}
	for name, use := range u.used.Range {
		id, of := strings.CutPrefix(name.(string), org+"/")
		if at := time.Unix(use.(*keyUse).seen.Load(), 0).UTC(); of && at.Unix() > 0 && at.After(used[id]) {
			used[id] = at
		}
	}
	return used
}

// Refresh reads the keys made at run time and the revocations of tokens that have
// changed, and puts them in force: both at once, so that each has all of the time. Run does so every second.
func (s *Keys) Refresh(ctx context.Context) error {
	var tokens error
	var both errgroup.Group
	both.Go(func() error { return panics.Catch(func() { tokens = s.Tokens.Refresh(ctx) }) })
	keys := s.applyChanges(s.keyring.Refresh(ctx))
	panics.Raise(both.Wait())
	if err := errors.Join(keys, tokens); err != nil {
		return err
	}
	return s.keyring.flush(ctx)
}

// applyChanges puts the keys in force if they have changed. It returns err.
func (s *Keys) applyChanges(changed bool, err error) error {
	if changed {
		s.deps.Apply(s.with)
	}
	return err
}

// Run refreshes until ctx ends.
func (s *Keys) Run(ctx context.Context) {
	poll := time.NewTicker(keyPoll)
	defer poll.Stop()
	for {
		s.Poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// Poll refreshes once. That the store stops or begins to answer is one line each.
func (s *Keys) Poll(ctx context.Context) {
	_, before := s.State()
	polled, cancel := context.WithTimeout(ctx, s.deps.Config().Limits.Timeout)
	defer cancel()
	if err := s.Refresh(polled); (err == nil) != (before == nil) && ctx.Err() == nil {
		s.deps.Logger.WarnContext(ctx, "store of keys", "answers", err == nil, "error", fmt.Sprint(err))
	}
}
