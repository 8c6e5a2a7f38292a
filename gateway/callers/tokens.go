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

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

const (
	// maxRevoked is the maximum number of token revocations, maxClaim the maximum length of a claim in bytes.
	maxRevoked = 10_000
	maxClaim   = 512
	// allTokens takes the place of the organisation in the Redis keys of revocations, which do not belong to
	// one organisation.
	allTokens = "all"
	// minRetention is the minimum retention of a revocation.
	minRetention = 30 * 24 * time.Hour
	// IssuerPollInterval is the interval between checks for keys of issuers that are due.
	IssuerPollInterval = 5 * time.Second
)

// Tokens manages revoked tokens and the keys of token issuers.
type Tokens struct {
	deps    Deps
	issuers *identity.IssuerKeys
	known   *store.Replica[*RevokedToken]

	mu sync.Mutex // held while revocations are passed to the issuers
}

// newTokens returns a Tokens whose Redis keys begin with prefix.
func newTokens(prefix settings.Prefix, deps Deps) *Tokens {
	return &Tokens{
		deps: deps, issuers: identity.NewIssuerKeys(deps.Now, deps.Logger),
		known: store.NewReplica(deps.Redis, prefix.Tokens(), store.ReplicaConfig[*RevokedToken]{
			Name: "revoked tokens", Logger: deps.Logger, Now: deps.Now, Orgs: func() []string { return []string{allTokens} }, MaxRecords: maxRevoked,
			AlwaysRead: true, // after a loss of the store, a gateway that starts accepts revoked tokens until the revocations are restored
		}),
	}
}

// Issuers returns the verification keys of the token issuers, together with the revocations of tokens.
func (t *Tokens) Issuers() *identity.IssuerKeys { return t.issuers }

// RecordID implements store.Replicated. Each token and each subject has at most one revocation.
func (r *RevokedToken) RecordID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.Issuer, r.Token, r.Subject}, "\x00")))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// Later implements store.Replicated. It reports whether r is later than the given revocation of the same token or subject.
func (r *RevokedToken) Later(than *RevokedToken) bool { return r.At.After(than.At) }

// Ends implements store.Replicated. It returns Until.
func (r *RevokedToken) Ends() time.Time { return r.Until }

// Refresh reads the token revocations and closes the streams of revoked tokens.
func (t *Tokens) Refresh(ctx context.Context) error { return t.applyChanges(t.known.Refresh(ctx)) }

// applyChanges applies the revocations if they have changed. If the store was never read, no token is accepted. It
// returns err.
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

// issuer returns an issuer of callers or admins by its id or URL, with defaults applied. If both have the issuer, it
// returns the one with the longer token lifetime.
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
		return identity.TokenIssuer{}, adminapi.RefusedError{Status: http.StatusNotFound, Reason: "no issuer with this id or URL"}
	}
	if slices.ContainsFunc(found, func(c identity.TokenIssuer) bool { return c.URL != found[0].URL }) {
		return identity.TokenIssuer{}, adminapi.BadRequestError{Reason: "two issuers have this id; specify the URL of the issuer"}
	}
	return slices.MaxFunc(found, func(a, b identity.TokenIssuer) int {
		return cmp.Compare(a.WithDefaults().MaxLifetime(), b.WithDefaults().MaxLifetime())
	}).WithDefaults(), nil
}

// list returns the revoked tokens, oldest first.
func (t *Tokens) list(ctx context.Context, _ adminapi.Principal, _ adminapi.NoParams) (revocationList, error) {
	if err := t.applyChanges(t.known.RefreshOrg(ctx, allTokens)); err != nil {
		return revocationList{}, err
	}
	var list []RevokedToken
	for _, r := range t.known.Of(allTokens).All() {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b RevokedToken) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Issuer+a.Token+a.Subject, b.Issuer+b.Token+b.Subject))
	})
	return revocationList{list}, nil
}

// revoke revokes the token with a given jti, or all tokens issued to a subject so far.
func (t *Tokens) revoke(ctx context.Context, s adminapi.Principal, p revokeParams) (RevokedToken, error) {
	if (p.ID == "") == (p.Subject == "") {
		return RevokedToken{}, adminapi.BadParam("id", "specify either the id of a token or a subject")
	}
	if len(p.ID) > maxClaim || len(p.Subject) > maxClaim {
		return RevokedToken{}, adminapi.BadRequestError{Reason: "id and subject must not exceed 512 bytes"}
	}
	c, err := t.issuer(p.Issuer)
	if err != nil {
		return RevokedToken{}, err
	}
	now := t.deps.Now().UTC().Truncate(time.Second)
	next := RevokedToken{
		Issuer: c.URL, Token: p.ID, Subject: p.Subject, At: now, By: s.Name,
		Until: now.Add(max(minRetention, c.MaxLifetime())),
	}
	err = t.add(ctx, &next)
	if errors.Is(err, store.ErrFull) {
		return next, adminapi.RefusedError{
			Status: http.StatusConflict,
			Reason: "limit of 10000 revocations reached; revoke by subject, or remove the issuer from the configuration",
		}
	}
	return next, err
}

// add stores a revocation unless a later one exists.
func (t *Tokens) add(ctx context.Context, next *RevokedToken) error {
	for {
		if err := t.applyChanges(t.known.RefreshOrg(ctx, allTokens)); err != nil {
			return err
		}
		have := t.known.Of(allTokens).Get(next.RecordID())
		if have != nil && !next.Later(have) {
			return nil
		}
		if done, err := t.known.Swap(ctx, allTokens, have, next); done || err != nil {
			return t.applyChanges(done, err)
		}
	}
}
