package callers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

const (
	// maxRevoked bounds the revocations of tokens that are kept, maxClaim each
	// claim of one, in bytes.
	maxRevoked = 10_000
	maxClaim   = 512
	// allTokens takes the place of an organisation in the keys of revocations.
	allTokens = "all"
	// minRetention is how long a revocation is remembered at least.
	minRetention = 30 * 24 * time.Hour
)

// Tokens revokes tokens of issuers.
type Tokens struct {
	deps    Deps
	issuers *identity.IssuerKeys
	known   *store.Replica[*RevokedToken]

	mu sync.Mutex // held while the issuers are given the known revocations
}

// NewTokens returns tokens that are kept below a prefix.
func NewTokens(prefix settings.Prefix, deps Deps) *Tokens {
	return &Tokens{
		deps: deps, issuers: identity.NewIssuerKeys(deps.Now, deps.Logger),
		known: store.NewReplica(deps.Redis, prefix.Tokens(), store.ReplicaConfig[*RevokedToken]{
			Name: "revoked tokens", Logger: deps.Logger, Now: deps.Now, Orgs: func() []string { return []string{allTokens} }, MaxRecords: maxRevoked,
			AlwaysRead: true, // a gateway that starts after a loss accepts revoked tokens until they are written back
		}),
	}
}

// Issuers returns the keys of issuers, which refuse revoked tokens.
func (t *Tokens) Issuers() *identity.IssuerKeys { return t.issuers }

// RecordID implements store.Replicated: there is one revocation of each token and each subject.
func (r *RevokedToken) RecordID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.Issuer, r.Token, r.Subject}, "\x00")))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// Later implements store.Replicated.
func (r *RevokedToken) Later(than *RevokedToken) bool { return r.At.After(than.At) }

// Ends implements store.Replicated.
func (r *RevokedToken) Ends() time.Time { return r.Until }

// Refresh reads which tokens were revoked, and ends the streams of those that are
// now.
func (t *Tokens) Refresh(ctx context.Context) error { return t.applyChanges(t.known.Refresh(ctx)) }

// applyChanges puts the revocations in force if they have changed. Without any, because the store was never read, no token is accepted. It returns
// err.
func (t *Tokens) applyChanges(changed bool, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if good, _ := t.known.State(); good.IsZero() {
		t.issuers.SetRevocationsUnknown()
		return err
	}
	if !changed {
		return err
	}
	var list []identity.Revocation
	for _, r := range t.known.Of(allTokens).All() {
		list = append(list, identity.Revocation{Issuer: r.Issuer, Token: r.Token, Subject: r.Subject, At: r.At})
	}
	t.issuers.Revoke(list)
	t.deps.Streams.Recheck()
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
		return cmp.Compare(a.WithDefaults().MaxLifetime(), b.WithDefaults().MaxLifetime())
	}).WithDefaults(), nil
}

// list returns the revoked tokens, the oldest first.
func (t *Tokens) list(ctx context.Context, _ row.Scope, _ row.None) (RevocationList, error) {
	if err := t.applyChanges(t.known.RefreshOrg(ctx, allTokens)); err != nil {
		return RevocationList{}, err
	}
	var list []RevokedToken
	for _, r := range t.known.Of(allTokens).All() {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b RevokedToken) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Issuer+a.Token+a.Subject, b.Issuer+b.Token+b.Subject))
	})
	return RevocationList{list}, nil
}

// revoke revokes the token of an issuer that has a jti, or all tokens that a subject was issued until now.
func (t *Tokens) revoke(ctx context.Context, s row.Scope, p revokeParams) (RevokedToken, error) {
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
	now := t.deps.Now().UTC().Truncate(time.Second)
	next := RevokedToken{Issuer: c.URL, Token: p.ID, Subject: p.Subject, At: now, By: s.Author(), Until: now.Add(max(minRetention, c.MaxLifetime()))}
	err = t.add(ctx, &next)
	if errors.Is(err, store.ErrFull) {
		return next, row.RefusedError{Status: http.StatusConflict, Reason: "10000 revocations are kept, as many as there may be: revoke by subject, or take the issuer out of the configuration"}
	}
	return next, err
}

// add writes a revocation, unless there is one as late.
func (t *Tokens) add(ctx context.Context, next *RevokedToken) error {
	for {
		if err := t.applyChanges(t.known.RefreshOrg(ctx, allTokens)); err != nil {
			return err
		}
		if have := t.known.Of(allTokens).Get(next.RecordID()); have != nil && !next.Later(have) {
			return nil
		}
		if done, err := t.known.Swap(ctx, allTokens, next); done || err != nil {
			return t.applyChanges(done, err)
		}
	}
}
