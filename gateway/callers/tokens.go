package callers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

const (
	// maxRevoked bounds the revocations of tokens that are kept, maxClaim each
	// claim of one, in bytes.
	maxRevoked = 10_000
	maxClaim   = 512
	// allTokens takes the place of an organisation in the keys of revocations, and
	// the index that has them all.
	allTokens = "all"
	// revokedHere is the version of revocations that both this gateway and others have changed,
	// which is none of the store's: one that forgets at once has none.
	revokedHere = "-"
	// memory is how long a revocation is remembered at least.
	memory = 30 * 24 * time.Hour
)

// Tokens revokes tokens of issuers: the store, and what this gateway knows of it. Its knowledge is in force whether the store answers or not,
// and is written back to a store that has lost it.
type Tokens struct {
	deps    RevocationDeps
	issuers *identity.IssuerKeys
	store   *store.Store[RevokedToken]

	mu      sync.Mutex // held while the store is asked; guards what follows
	read    bool       // whether the store ever was
	version string
	known   map[string]RevokedToken // by id
}

// RevocationDeps are the dependencies of Tokens. All are required.
type RevocationDeps struct {
	Redis  redis.Cmdable
	Logger *slog.Logger
	*view.Current
	// Streams are checked again when other tokens are revoked.
	Streams *filter.Streams
}

// NewTokens returns tokens that are kept below a prefix.
func NewTokens(prefix settings.Prefix, deps RevocationDeps) *Tokens {
	return &Tokens{deps: deps, issuers: identity.NewIssuerKeys(deps.Now, deps.Logger), store: store.New[RevokedToken](deps.Redis, prefix.Tokens()), known: make(map[string]RevokedToken)}
}

// Issuers returns the keys of issuers, which refuse revoked tokens.
func (t *Tokens) Issuers() *identity.IssuerKeys { return t.issuers }

// revokedID is the id of a revocation: of each token and each subject there is one.
func revokedID(r *RevokedToken) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.Issuer, r.Token, r.Subject}, "\x00")))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// refresh reads the changes in the store, and reports whether there were any.
func (t *Tokens) refresh(ctx context.Context) (changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	versions, err := t.store.Versions(ctx, []string{allTokens})
	if err == nil && (!t.read || versions[allTokens] != t.version) {
		changed, err = t.load(ctx, versions[allTokens])
	}
	if err != nil && !t.read {
		t.issuers.Doubt()
	}
	return changed, err
}

// load reads the revocations, and writes back those that the store has lost. mu is held.
func (t *Tokens) load(ctx context.Context, version string) (changed bool, err error) {
	entries, err := t.store.Entries(ctx, allTokens, allTokens)
	if err != nil {
		return false, err
	}
	next := make(map[string]RevokedToken, len(entries))
	for _, e := range entries {
		next[e.ID] = *e.Record
	}
	now := t.deps.Now()
	for id, have := range t.known {
		if got, there := next[id]; there && !have.At.After(got.At) || !have.Until.After(now) {
			continue
		}
		if err := t.write(ctx, have); err != nil {
			return false, err
		}
		next[id], version = have, revokedHere
	}
	changed = !maps.Equal(t.known, next)
	t.known, t.version, t.read = next, version, true
	t.issuers.Revoke(t.revocations())
	return changed, nil
}

// write stores a revocation, in the place of an earlier one.
func (t *Tokens) write(ctx context.Context, next RevokedToken) error {
	id := revokedID(&next)
	w := store.Write[RevokedToken]{
		Record: &next, TTL: max(next.Until.Sub(t.deps.Now()), time.Second), Version: true, In: []store.Index{{Name: allTokens, Most: maxRevoked}},
	}
	for {
		old, err := t.store.Get(ctx, allTokens, id)
		if err != nil {
			return err
		}
		old.ID = id
		if old.Record != nil && !next.At.After(old.Record.At) {
			return nil
		}
		if _, done, err := t.store.Swap(ctx, allTokens, old, w); done || err != nil {
			return err
		}
	}
}

// add revokes, here at once.
func (t *Tokens) add(ctx context.Context, next RevokedToken) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.write(ctx, next); err != nil {
		return err
	}
	t.known = maps.Clone(t.known)
	t.known[revokedID(&next)] = next
	t.version = revokedHere
	t.issuers.Revoke(t.revocations())
	return nil
}

// revocations returns the revocations for verifiers. The caller holds mu.
func (t *Tokens) revocations() []identity.Revocation {
	list := make([]identity.Revocation, 0, len(t.known))
	for _, r := range t.known {
		list = append(list, identity.Revocation{Issuer: r.Issuer, Token: r.Token, Subject: r.Subject, At: r.At})
	}
	return list
}

// Refresh reads which tokens were revoked, and ends the streams of those that are
// now.
func (t *Tokens) Refresh(ctx context.Context) error {
	changed, err := t.refresh(ctx)
	if changed {
		t.deps.Streams.Recheck()
	}
	return err
}

// issuer returns an issuer by its id or URL, with the defaults of its settings: one of
// callers', one of admins', or both.
func (t *Tokens) issuer(name string) (identity.TokenIssuer, error) {
	cfg := t.deps.Config()
	var found []identity.TokenIssuer
	for i := range cfg.Issuers {
		if one := &cfg.Issuers[i]; one.ID == name || one.URL == name {
			found = append(found, one.TokenIssuer)
		}
	}
	for i := range cfg.Admin.Issuers {
		if one := &cfg.Admin.Issuers[i]; one.ID == name || one.URL == name {
			found = append(found, one.TokenIssuer)
		}
	}
	if len(found) == 0 {
		return identity.TokenIssuer{}, row.RefusedError{Status: http.StatusNotFound, Reason: "no issuer has this id or URL"}
	}
	if slices.ContainsFunc(found, func(c identity.TokenIssuer) bool { return c.URL != found[0].URL }) {
		return identity.TokenIssuer{}, row.BadRequestError{Reason: "two issuers have this id: name one by its URL"}
	}
	return slices.MaxFunc(found, func(a, b identity.TokenIssuer) int {
		return cmp.Compare(a.WithDefaults().Lasts(), b.WithDefaults().Lasts())
	}).WithDefaults(), nil
}

// list returns the revoked tokens, the oldest first.
func (t *Tokens) list(ctx context.Context, _ row.Scope, _ row.None) (RevocationList, error) {
	if err := t.Refresh(ctx); err != nil {
		return RevocationList{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.deps.Now()
	list := slices.Collect(maps.Values(t.known))
	list = slices.DeleteFunc(list, func(t RevokedToken) bool { return !t.Until.After(now) })
	slices.SortFunc(list, func(a, b RevokedToken) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Issuer+a.Token+a.Subject, b.Issuer+b.Token+b.Subject))
	})
	return RevocationList{list}, nil
}

// revoke revokes the token of an issuer that has a jti, or all tokens that a subject was issued until now.
func (t *Tokens) revoke(ctx context.Context, s row.Scope, p revoking) (RevokedToken, error) {
	if (p.ID == "") == (p.Subject == "") {
		return RevokedToken{}, row.Bad("id", "name either a token by its id or a subject")
	}
	if len(p.ID) > maxClaim || len(p.Subject) > maxClaim {
		return RevokedToken{}, row.BadRequestError{Reason: "name either a token by its jti or a subject, of at most 512 bytes"}
	}
	c, err := t.issuer(p.Issuer)
	if err != nil {
		return RevokedToken{}, err
	}
	if err := t.Refresh(ctx); err != nil {
		return RevokedToken{}, err
	}
	now := t.deps.Now().UTC().Truncate(time.Second)
	next := RevokedToken{Issuer: c.URL, Token: p.ID, Subject: p.Subject, At: now, By: s.Author(), Until: now.Add(max(memory, c.Lasts()))}
	err = t.add(ctx, next)
	if errors.Is(err, store.ErrFull) {
		return next, row.RefusedError{Status: http.StatusConflict, Reason: "10000 revocations are kept, as many as there may be: revoke by subject, or take the issuer out of the configuration"}
	}
	if err != nil {
		return next, err
	}
	t.deps.Streams.Recheck()
	return next, nil
}
