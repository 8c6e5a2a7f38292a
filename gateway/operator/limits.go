package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Limits shows and resets quotas for operators. The zero value describes its rows.
type Limits struct {
	Limiter *ratelimit.Limiter
	*view.Current
}

// show returns the windows in use, and those that are configured and not in use.
func (l Limits) show(ctx context.Context, _ row.Scope, p row.Scoped) (LimitList, error) {
	org := string(p.Org)
	o := l.Org(org)
	if o == nil {
		return LimitList{}, row.ErrNoOrg
	}
	states, err := l.Limiter.Show(ctx, org)
	if err != nil {
		return LimitList{}, err
	}
	counted := make(map[ratelimit.Ref]bool)
	for _, s := range states {
		counted[s.Scope] = true
	}
	for ref, limit := range quotas(o) {
		if !counted[ref] {
			states = append(states, ratelimit.EmptyWindows(ref, limit, l.Now())...)
		}
	}
	slices.SortStableFunc(states, func(a, b ratelimit.WindowState) int {
		return cmp.Or(cmp.Compare(a.Scope.Kind, b.Scope.Kind), cmp.Compare(a.Scope.ID, b.Scope.ID))
	})
	windows := make([]Window, len(states))
	for i, s := range states {
		windows[i] = Window{
			Scope: s.Scope.String(), Window: s.Window, Limit: s.Limit, Used: s.Used, Remaining: s.Remaining,
			ResetSeconds: int64((s.Reset + time.Second - 1) / time.Second),
		}
		for _, lease := range s.Leases {
			windows[i].Leases = append(windows[i].Leases, Lease{Gateway: lease.Gateway, Held: lease.Held})
		}
	}
	return LimitList{windows}, nil
}

// quotas are the quotas of all scopes that are known before they are counted. The keys
// of an issuer, which share a setting, are not.
func quotas(o *settings.Org) map[ratelimit.Ref]ratelimit.Limit {
	quotas := o.Limits()
	for _, i := range o.Issued {
		delete(quotas, ratelimit.Ref{Kind: ratelimit.KindKey, ID: settings.IssuerKeyPrefix(i.ID)})
	}
	for _, c := range o.Classes {
		class := callers.CompileClass(c)
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

// reset empties the windows of a scope, or of the whole organisation.
func (l Limits) reset(ctx context.Context, _ row.Scope, p resetting) (none row.Nothing, err error) {
	org := string(p.Org)
	o := l.Org(org)
	if o == nil {
		return none, row.ErrNoOrg
	}
	var ref ratelimit.Ref
	if p.Scope != "" {
		if ref, err = ratelimit.ParseRef(p.Scope); err != nil {
			return none, row.BadRequestError{Reason: err.Error()}
		}
		if err := l.known(ctx, o, ref); err != nil {
			return none, err
		}
	}
	return none, l.Limiter.Reset(ctx, org, ref)
}

// known reports whether an organisation has a scope: by the configuration, or
// because it was counted today.
func (l Limits) known(ctx context.Context, o *settings.Org, ref ratelimit.Ref) error {
	if _, ok := o.Limits()[ref]; ok {
		return nil
	}
	counted, err := l.Limiter.Show(ctx, o.ID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(counted, func(s ratelimit.WindowState) bool { return s.Scope == ref }) {
		return nil
	}
	return row.BadRequestError{Reason: fmt.Sprintf("organisation %s has no scope %s: neither configured nor counted today", o.ID, ref)}
}
