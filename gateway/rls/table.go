package rls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Table knows what descriptors are counted in. It is immutable.
type Table struct {
	Domains []Domain
	*filter.Callers
}

// domain returns a domain by its name, nil if there is none.
func (t *Table) domain(id string) *Domain {
	for i := range t.Domains {
		if t.Domains[i].ID == id {
			return &t.Domains[i]
		}
	}
	return nil
}

// reading is what a descriptor came to.
type reading struct {
	// scopes are what it is counted in, units how much; none for what is not limited.
	scopes []ratelimit.Scope
	units  int64
	// refused is set when no quota can let it pass: it names nothing known, or its
	// override is zero.
	refused bool
}

// entry is one entry of a descriptor.
type entry = commonv3.RateLimitDescriptor_Entry

// organisation returns the organisation that all descriptors of a request are
// counted for, "" if none is named. A request that names two is an error.
func (t *Table) organisation(ctx context.Context, d *Domain, descriptors []*commonv3.RateLimitDescriptor, now time.Time) (string, error) {
	if d.Org != "" {
		return d.Org, nil
	}
	org := ""
	for _, desc := range descriptors {
		named := ""
		switch first := desc.GetEntries()[0]; first.GetKey() {
		case entryOrg:
			named = first.GetValue()
		case entryAuthorization:
			if c := t.caller(ctx, desc.GetEntries(), now); c != nil {
				named = c.Org
			}
		}
		if named != "" && org != "" && named != org {
			return "", fmt.Errorf("descriptors name the organisations %q and %q: a request counts for one", org, named)
		}
		org = max(org, named)
	}
	return org, nil
}

// caller returns the caller that entries name: by an Authorization header and,
// behind it, the address that the caller has. It is nil for a stranger, such as a
// caller whose key is bound to other addresses.
func (t *Table) caller(ctx context.Context, entries []*entry, now time.Time) *identity.Caller {
	address := ""
	if len(entries) == 2 && entries[1].GetKey() == entryAddress {
		address = entries[1].GetValue()
	}
	scheme, key, _ := strings.Cut(entries[0].GetValue(), " ")
	if !strings.EqualFold(scheme, "Bearer") || len(entries) > 1 && address == "" {
		return nil
	}
	c, err := t.Directory.Find(ctx, identity.Credentials{Key: key, Peer: address}, now)
	if err != nil {
		return nil
	}
	return c
}

// read finds out what a descriptor is counted in, for an organisation.
func (t *Table) read(ctx context.Context, d *Domain, org string, desc *commonv3.RateLimitDescriptor, now time.Time) (reading, error) {
	override, err := overriding(desc.GetLimit())
	if err != nil {
		return reading{}, err
	}
	scopes, known := t.scopes(ctx, d, org, desc, now)
	switch {
	case !known:
		return reading{refused: !d.Unknown.passes()}, nil
	case override != nil && *override == ratelimit.Limit{}:
		return reading{refused: true}, nil
	case override != nil && len(scopes) > 0:
		scopes[0].Limit = overridden(scopes[0], *override)
	}
	return reading{scopes: slices.DeleteFunc(scopes, func(s ratelimit.Scope) bool { return s.Limit.Unlimited() })}, nil
}

// scopes returns what a descriptor is counted in, that which its override is for
// first, and whether it names something known.
func (t *Table) scopes(ctx context.Context, d *Domain, org string, desc *commonv3.RateLimitDescriptor, now time.Time) ([]ratelimit.Scope, bool) {
	tenant := t.Tenants[org]
	if tenant == nil {
		return nil, false
	}
	entries := desc.GetEntries()
	if entries[0].GetKey() == entryOrg {
		if entries[0].GetValue() != org {
			return nil, false
		}
		if entries = entries[1:]; len(entries) == 0 {
			return []ratelimit.Scope{tenant.Scope(ratelimit.KindOrg, org)}, true
		}
	}
	if reserved(entries[0].GetKey()) {
		return t.shared(ctx, tenant, entries, now)
	}
	for _, r := range d.Rules {
		if r.fits(entries) {
			return []ratelimit.Scope{{Kind: ratelimit.KindDescriptor, ID: counter(d.ID, r.ID, entries), Limit: r.Limit, Policy: r.ID}}, true
		}
	}
	return []ratelimit.Scope{{Kind: ratelimit.KindDescriptor, ID: counter(d.ID, "", entries), Policy: d.ID}}, desc.GetLimit() != nil
}

// shared returns the counters of a tenant that entries name, those that calls of the
// gateway are counted in.
func (t *Table) shared(ctx context.Context, tenant *filter.Tenant, entries []*entry, now time.Time) ([]ratelimit.Scope, bool) {
	id, alone := entries[0].GetValue(), len(entries) == 1
	switch entries[0].GetKey() {
	case entryTeam:
		_, known := tenant.Limits[ratelimit.Ref{Kind: ratelimit.KindTeam, ID: id}]
		return []ratelimit.Scope{tenant.Scope(ratelimit.KindTeam, id)}, known && alone
	case entryKey:
		_, known := tenant.Limits[ratelimit.Ref{Kind: ratelimit.KindKey, ID: id}]
		return []ratelimit.Scope{tenant.Scope(ratelimit.KindKey, id)}, known && alone
	case entryAuthorization:
		c := t.caller(ctx, entries, now)
		if c == nil || c.Org != tenant.ID {
			return nil, false
		}
		if c.Exempt {
			return nil, true
		}
		scopes := tenant.Scopes(c)
		if key := tenant.Scope(ratelimit.KindKey, c.Key); key.Limit.Unlimited() {
			scopes = slices.Insert(scopes, 0, key)
		}
		return scopes, true
	}
	return nil, false
}

// fits reports whether a rule is for a descriptor with these entries.
func (r *Rule) fits(entries []*entry) bool {
	if len(entries) != len(r.Entries) {
		return false
	}
	for i, want := range r.Entries {
		if e := entries[i]; e.GetKey() != want.Key || want.Value != "" && e.GetValue() != want.Value {
			return false
		}
	}
	return true
}

// maxCounter bounds the identifiers of counters as they are read by operators;
// longer ones become digests.
const maxCounter = 100

// counter names what entries are counted in: readable, and never the same for two
// that differ. A rule that fits entries has said their keys.
func counter(domain, rule string, entries []*entry) string {
	id := []string{domain, rule}
	for _, e := range entries {
		if rule == "" {
			id = append(id, url.PathEscape(e.GetKey()))
		}
		id = append(id, url.PathEscape(e.GetValue()))
	}
	text := strings.Join(id, "/")
	if len(text) <= maxCounter {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "#" + hex.EncodeToString(sum[:])
}

// overriding is the quota that a descriptor brings along, nil if it brings none and
// zero if it lets nothing pass.
func overriding(o *commonv3.RateLimitDescriptor_RateLimitOverride) (*ratelimit.Limit, error) {
	n := int64(o.GetRequestsPerUnit())
	switch {
	case o == nil:
		return nil, nil
	case o.GetUnit() == typev3.RateLimitUnit_MINUTE:
		return &ratelimit.Limit{Minute: n}, nil
	case o.GetUnit() == typev3.RateLimitUnit_HOUR:
		return &ratelimit.Limit{Hour: n}, nil
	case o.GetUnit() == typev3.RateLimitUnit_DAY:
		return &ratelimit.Limit{Day: n}, nil
	}
	return nil, fmt.Errorf("limit per %s: quotas are per MINUTE, HOUR or DAY", o.GetUnit())
}

// overridden is the quota of a scope under an override: of what is counted for a rule
// the override alone; quotas of organisations, teams and keys it can only lower.
func overridden(s ratelimit.Scope, o ratelimit.Limit) ratelimit.Limit {
	if s.Kind == ratelimit.KindDescriptor {
		return o
	}
	return ratelimit.Limit{
		Minute: lower(s.Limit.Minute, o.Minute), Hour: lower(s.Limit.Hour, o.Hour), Day: lower(s.Limit.Day, o.Day),
	}
}

// lower returns the lower of two quotas, of which zero is none.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// checkDescriptors reports what cannot be counted in the form it has.
func checkDescriptors(descriptors []*commonv3.RateLimitDescriptor) error {
	if n := len(descriptors); n == 0 || n > ratelimit.MaxScopes {
		return fmt.Errorf("%d descriptors, want 1 to %d", n, ratelimit.MaxScopes)
	}
	for _, d := range descriptors {
		switch {
		case len(d.GetEntries()) == 0:
			return errors.New("a descriptor without entries")
		case d.GetIsNegativeHits():
			return errors.New("is_negative_hits: what was taken is not given back")
		case d.GetHitsAddend() != nil && d.GetHitsAddend().GetValue() == 0:
			return errors.New("hits_addend 0 of a descriptor: what is counted is counted before the request")
		}
	}
	return nil
}
