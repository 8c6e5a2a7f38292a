package callers

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Limits of keys created at run time.
const (
	maxKeys    = 10_000 // per organisation
	maxSecrets = 8      // per key
	maxMadeID  = 64     // bytes
	maxSpec    = 16 << 10
	maxOverlap = 90 * 24 * time.Hour
)

// KeyResponse is the response to creating or rotating a key. It is the only response that contains the secret.
type KeyResponse struct {
	Secret string             `json:"secret,omitempty"`
	Key    settings.KeyRecord `json:"key"`
}

// parseKey parses the specification of a key, which has the fields of a key in the configuration except moved_from.
func parseKey(spec string) (settings.Key, error) {
	var k settings.Key
	if len(spec) > maxSpec {
		return k, problem.Invalid.Newf("key specification exceeds %d bytes", maxSpec)
	}
	err := strictyaml.Decode("key", []byte(spec), &k)
	if err == nil && k.MovedFrom != "" {
		err = fault.Errorf("moved_from", "is supported only for keys in the configuration")
	}
	return k, invalidKey(err)
}

// invalidKey returns a problem that lists every error in a specification, or nil if err is nil.
func invalidKey(err error) error {
	if err == nil {
		return nil
	}
	p := problem.Invalid.New("invalid key specification")
	faults, ok := errors.AsType[strictyaml.Errors](err)
	if !ok {
		faults, _ = errors.AsType[strictyaml.Errors](strictyaml.Locate(new(strictyaml.Positions), err))
	}
	for _, f := range faults {
		f.File, f.Line = "", 0
		p.Errors = append(p.Errors, f.Error())
	}
	return p
}

func taken(org, id string) error {
	return problem.KeyConflict.Newf("organisation %s already has a key %q", org, id)
}

// createKey creates a key. by is the author of the key in its record. The secret of the key is random unless a digest is given. The id of a
// revoked or expired key can be reused.
func (s *Keys) createKey(ctx context.Context, org string, k settings.Key, by string) (*KeyResponse, error) {
	created := s.deps.Now().UTC().Truncate(time.Second)
	secret := ""
	if k.Digest == (identity.Digest{}) && len(k.Digests) == 0 {
		secret = identity.NewKey()
		k.Digest = identity.DigestOf(secret)
	}
	if strings.Trim(k.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || len(k.ID) > maxMadeID {
		return nil, problem.Invalid.Newf("key id must consist of at most %d letters, digits, '-', '_' and '.'", maxMadeID)
	}
	if !k.Expires.IsZero() && !k.Expires.After(created) {
		return nil, problem.Invalid.New("expires must be in the future")
	}
	if err := invalidKey(k.Validate()); err != nil {
		return nil, err
	}
	if err := s.freshKeys(ctx, org); err != nil {
		return nil, err
	}
	old := s.keyring.Of(org).Get(k.ID)
	if old != nil && !old.ended(created) {
		return nil, taken(org, k.ID)
	}
	revision := int64(1)
	if old != nil {
		revision = old.Revision + 1 // the new record replaces the old one wherever that is still known
	}
	m := runtimeKey{Key: k, Revision: revision, Created: created, By: by}
	m.checkFault()
	if why := s.deps.Callers().inactiveReason(org, &m); why != "" {
		return nil, problem.KeyConflict.New(why)
	}
	return s.changeKey(ctx, org, old, m, secret)
}

// freshKeys reads the changes that other gateways made to the keys of an organisation, or all keys if they were never
// read, so that the next decision uses the current keys.
func (s *Keys) freshKeys(ctx context.Context, org string) error {
	if err := s.applyChanges(s.keyring.RefreshOrg(ctx, org)); err != nil {
		return keysUnavailable(err)
	}
	return nil
}

func keysUnavailable(err error) error {
	return problem.KeysUnavailable.New("cannot read or change the keys created at run time; try again").With("Retry-After", "1").Because(err)
}

// errKeyChanged is the cause of a 409 for a key that has changed since it was read.
var errKeyChanged = errors.New("the key has changed since it was read")

// changeKey replaces the record old of a key, nil for none, in the store and applies the change here.
func (s *Keys) changeKey(ctx context.Context, org string, old *runtimeKey, m runtimeKey, secret string) (*KeyResponse, error) {
	m.checkFault()
	done, err := s.keyring.Swap(ctx, org, old, &m)
	switch {
	case errors.Is(err, store.ErrFull):
		return nil, problem.KeyConflict.Newf("organisation %s has reached the limit of %d keys created at run time", org, maxKeys)
	case err != nil:
		return nil, keysUnavailable(err)
	case !done:
		return nil, problem.KeyConflict.Newf("another request has created or changed key %q; check it and try again", m.ID).Because(errKeyChanged)
	}
	s.deps.Apply(s.with)
	return &KeyResponse{Secret: secret, Key: m.record()}, nil
}

// madeKey returns the current record of a key that can be changed at run time.
func (s *Keys) madeKey(ctx context.Context, org, id string) (*runtimeKey, error) {
	if err := s.freshKeys(ctx, org); err != nil {
		return nil, err
	}
	if s.deps.Callers().of[org].ids[id] {
		return nil, problem.KeyConflict.Newf("key %q is defined in the configuration; change it there", id)
	}
	known := s.keyring.Of(org).Get(id)
	if known == nil {
		return nil, noKey(org, id)
	}
	return known, nil
}

func noKey(org, id string) error {
	return problem.NotFound.Newf("organisation %s has no key %q created at run time", org, id)
}

// rotateKey gives a key an additional secret. old is the key's record, as read by madeKey.
func (s *Keys) rotateKey(ctx context.Context, org string, old *runtimeKey, overlap time.Duration) (*KeyResponse, error) {
	m, now := *old, s.deps.Now().UTC().Truncate(time.Second)
	switch {
	case overlap < 0 || overlap > maxOverlap:
		return nil, problem.Invalid.Newf("overlap must be at most %s", maxOverlap)
	case !m.Revoked.IsZero():
		return nil, problem.KeyConflict.Newf("key %q is revoked", m.ID)
	case !m.Expires.IsZero() && !m.Expires.After(now):
		return nil, problem.KeyConflict.Newf("key %q has expired", m.ID)
	}
	secret := identity.NewKey()
	m.Digests, m.Digest = m.Rotated(identity.DigestOf(secret), now, overlap), identity.Digest{}
	if len(m.Digests) > maxSecrets {
		return nil, problem.KeyConflict.Newf("key %q has reached the limit of %d valid secrets; wait until one expires, or use an overlap of 0s",
			m.ID, maxSecrets)
	}
	m.Revision++
	return s.changeKey(ctx, org, old, m, secret)
}

// revokeKey revokes a key. It has no effect on a revoked key. old is the key's record, as read by madeKey.
func (s *Keys) revokeKey(ctx context.Context, org string, old *runtimeKey, by string) error {
	if !old.Revoked.IsZero() {
		return nil
	}
	m := *old
	m.Revoked, m.RevokedBy = s.deps.Now().UTC().Truncate(time.Second), by
	m.Revision++
	_, err := s.changeKey(ctx, org, old, m, "")
	return err
}

// listKeys returns the keys of an organisation that were created at run time, sorted by id.
func (s *Keys) listKeys(org string, used map[string]time.Time) []settings.KeyRecord {
	known, now, callers := s.keyring.Of(org).All(), s.deps.Now(), s.deps.Callers()
	list := make([]settings.KeyRecord, 0, len(known))
	for _, m := range known {
		r := m.record()
		if at := used[m.ID]; !at.Before(m.Created) { // an earlier use belongs to a previous key with this id
			r.Used = at
		}
		switch why := callers.inactiveReason(org, m); {
		case !m.Revoked.IsZero():
			r.State = "revoked"
		case !m.Expires.IsZero() && !m.Expires.After(now):
			r.State = "expired"
		case why != "":
			r.State = "not in force: " + why
		default:
			r.State = "in force"
		}
		list = append(list, r)
	}
	return list
}

// configuredKeys returns the keys of an organisation in the configuration, in their order.
func (s *Keys) configuredKeys(org string, used map[string]time.Time) []settings.KeyRecord {
	o, now := s.org(org), s.deps.Now()
	list := make([]settings.KeyRecord, 0, len(o.Keys))
	for i := range o.Keys {
		k := &o.Keys[i]
		r := k.Record()
		r.By, r.State, r.Used = "configuration", "expired", used[k.ID]
		for _, d := range k.Accepted() {
			switch {
			case !d.NotAfter.IsZero() && !now.Before(d.NotAfter):
			case !now.Before(d.NotBefore):
				r.State = "in force"
			case r.State == "expired":
				r.State = "not in force: before " + d.NotBefore.UTC().Format(time.RFC3339)
			}
		}
		list = append(list, r)
	}
	return list
}

// refused converts an error to the form of the admin listener.
func refused(err error) error {
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		return err
	}
	return adminapi.RefusedError{Status: p.Status, Reason: strings.Join(append([]string{p.Detail}, p.Errors...), "; ")}
}
