package limits

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Rows shows and resets quotas for the admin listener.
type Rows struct {
	Limiter *ratelimit.Limiter
	*view.Current
	// Tenant is the compiled form of an organisation, nil for none.
	Tenant func(id string) *filter.Tenant
	Now    func() time.Time
}

// Show implements admin.Limits.
func (l Rows) Show(ctx context.Context, org string) ([]admin.Window, error) {
	o := l.Org(org)
	if o == nil {
		return nil, admin.ErrNoOrg
	}
	states, err := l.Limiter.Show(ctx, org)
	if err != nil {
		return nil, err
	}
	counted := make(map[ratelimit.Ref]bool)
	for _, s := range states {
		counted[s.Scope] = true
	}
	for ref, limit := range quotas(o) {
		if !counted[ref] {
			states = append(states, ratelimit.Uncounted(ref, limit, l.Now())...)
		}
	}
	slices.SortStableFunc(states, func(a, b ratelimit.WindowState) int {
		return cmp.Or(cmp.Compare(a.Scope.Kind, b.Scope.Kind), cmp.Compare(a.Scope.ID, b.Scope.ID))
	})
	windows := make([]admin.Window, len(states))
	for i, s := range states {
		windows[i] = admin.Window{
			Scope: s.Scope.String(), Window: s.Window, Limit: s.Limit, Used: s.Used, Remaining: s.Remaining,
			ResetSeconds: int64((s.Reset + time.Second - 1) / time.Second),
		}
		for _, lease := range s.Leases {
			windows[i].Leases = append(windows[i].Leases, admin.Lease{Gateway: lease.Gateway, Held: lease.Held})
		}
	}
	return windows, nil
}

// quotas are the quotas of all scopes that are known before they are counted. The keys
// of an issuer, which share a setting, are not.
func quotas(o *settings.Org) map[ratelimit.Ref]ratelimit.Limit {
	quotas := o.Limits()
	for _, i := range o.Issued {
		delete(quotas, ratelimit.Ref{Kind: ratelimit.KindKey, ID: settings.KeysOf(i.ID)})
	}
	for _, c := range o.Classes {
		class := tenants.Class(c)
		add := func(caller identity.Caller) {
			s := class.Scope(&caller)
			quotas[s.Ref()] = s.Limit
		}
		switch class.Per {
		case ratelimit.KindKey:
			for k := range o.AllKeys() {
				if !k.Exempt {
					add(identity.Caller{Key: k.ID})
				}
			}
		case ratelimit.KindTeam:
			for _, t := range o.Teams {
				add(identity.Caller{Team: t.ID})
			}
		default:
			add(identity.Caller{})
		}
	}
	return quotas
}

// Reset implements admin.Limits.
func (l Rows) Reset(ctx context.Context, org, scope string) error {
	if l.Org(org) == nil {
		return admin.ErrNoOrg
	}
	var ref ratelimit.Ref
	if scope != "" {
		var err error
		if ref, err = ratelimit.ParseRef(scope); err != nil {
			return admin.BadRequestError{Reason: err.Error()}
		}
	}
	if ref != (ratelimit.Ref{}) {
		if err := l.known(ctx, org, ref); err != nil {
			return err
		}
	}
	return l.Limiter.Reset(ctx, org, ref)
}

// known reports whether an organisation has a scope: by the configuration, or
// because it was counted today.
func (l Rows) known(ctx context.Context, org string, ref ratelimit.Ref) error {
	if t := l.Tenant(org); t != nil {
		if _, ok := t.Limit(ref); ok {
			return nil
		}
	}
	counted, err := l.Limiter.Show(ctx, org)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(counted, func(s ratelimit.WindowState) bool { return s.Scope == ref }) {
		return nil
	}
	return admin.BadRequestError{Reason: fmt.Sprintf("organisation %s has no scope %s: neither configured nor counted today", org, ref)}
}
