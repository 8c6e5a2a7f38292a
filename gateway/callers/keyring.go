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
	// PollInterval is the interval between calls of [Keys.Poll], which reads key changes by other gateways.
	PollInterval = time.Second
	// keyRetention is the retention of revoked and expired keys.
	keyRetention = 30 * 24 * time.Hour
)

// keyring holds the keys created at run time as known to this gateway, and the last uses of all keys.
type keyring struct {
	*store.Replica[*runtimeKey]
	uses
}

// newKeyring returns a keyring whose Redis keys begin with prefix.
func newKeyring(prefix settings.Prefix, deps *Deps) *keyring {
	k := &keyring{uses: uses{hashes: store.Hashes{Client: deps.Redis, Prefix: prefix.Keys()}}}
	k.Replica = store.NewReplica(deps.Redis, prefix.Keys(), store.ReplicaConfig[*runtimeKey]{
		Name: "keys", Logger: deps.Logger, Now: deps.Now, Orgs: func() []string { return deps.Current.OrgIDs("") }, MaxRecords: maxKeys,
		OnAdd:    func(org string, m *runtimeKey) { m.Used = &k.usage(org, m.ID).seen },
		OnRemove: k.forget,
	})
	return k
}

// uses records the last uses of keys: those seen by this gateway, and those stored by all gateways. The zero value of
// used is empty.
type uses struct {
	hashes store.Hashes // maps key ids to their last use in Unix seconds
	used   sync.Map     // ORG/ID to *keyUse
}

// keyUse holds the last use of a key seen by this gateway and the last one stored, in Unix seconds.
type keyUse struct{ seen, stored atomic.Int64 }

// usage returns the record of the uses of a key.
func (u *uses) usage(org, id string) *keyUse {
	if use, ok := u.used.Load(org + "/" + id); ok {
		return use.(*keyUse)
	}
	use, _ := u.used.LoadOrStore(org+"/"+id, new(keyUse))
	return use.(*keyUse)
}

// usesOf returns the Redis key of the uses of an organisation's keys.
func usesOf(org string) string { return "{" + org + "}#used" }

// forget deletes the uses of a deleted key.
func (u *uses) forget(ctx context.Context, org, id string) error {
	u.used.Delete(org + "/" + id)
	return u.hashes.Delete(ctx, usesOf(org), id)
}

// flush stores the uses that have not been stored yet. It does not replace later ones of other gateways.
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

// lastUsed returns the last uses of an organisation's keys by id: the later of the stored time, if the store responds,
// and the time seen by this gateway.
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

// Refresh reads changed keys and token revocations and applies them. It reads both concurrently, so that each has the whole timeout. Poll
// is Refresh with logging.
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

// applyChanges applies the keys if they have changed. It returns err.
func (s *Keys) applyChanges(changed bool, err error) error {
	if changed {
		s.deps.Apply(s.with)
	}
	return err
}

// Poll calls Refresh once. It logs a line when the store begins to fail or to respond again.
func (s *Keys) Poll(ctx context.Context) {
	_, before := s.State()
	polled, cancel := context.WithTimeout(ctx, s.deps.Config().Limits.Timeout)
	defer cancel()
	if err := s.Refresh(polled); (err == nil) != (before == nil) && ctx.Err() == nil {
		s.deps.Logger.WarnContext(ctx, "key store availability changed", "available", err == nil, "error", fmt.Sprint(err))
	}
}
