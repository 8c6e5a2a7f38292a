package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Limits shows and resets quotas. The endpoints of a zero Limits can be listed but not
// called.
type Limits struct {
	Limiter *ratelimit.Limiter
	// Decisions counts the requests that each window has refused.
	Decisions *decisions.Decisions
	*view.Current
}

// throttledPeriod is the period of [Window.Throttled]. It ends now and starts at a multiple of throttledStep.
const (
	throttledPeriod = 24 * time.Hour
	throttledStep   = 5 * time.Minute
)

// show returns the windows in use, the configured windows that are not in use, and other windows that have refused requests.
func (l Limits) show(ctx context.Context, _ adminapi.Principal, p adminapi.OrgParam) (LimitList, error) {
	org := string(p.Org)
	o := l.Org(org)
	if o == nil {
		return LimitList{}, adminapi.ErrUnknownOrg
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
	since := l.Now().Add(-throttledPeriod).UTC().Truncate(throttledStep)
	throttled, err := l.Decisions.Throttled(ctx, org, since)
	if err != nil {
		return LimitList{}, err
	}
	windows := make([]Window, len(states))
	for i, s := range states {
		what := s.Scope.String() + " " + s.Window
		windows[i] = Window{
			Scope: s.Scope.String(), Window: s.Window, Limit: s.Limit, Used: s.Used, Remaining: s.Remaining,
			ResetSeconds: int64((s.Reset + time.Second - 1) / time.Second), Throttled: throttled[what],
		}
		delete(throttled, what)
		for _, lease := range s.Leases {
			windows[i].Leases = append(windows[i].Leases, Lease{Gateway: lease.Gateway, Held: lease.Held})
		}
	}
	for _, what := range slices.Sorted(maps.Keys(throttled)) {
		scope, window, _ := strings.Cut(what, " ")
		windows = append(windows, Window{Scope: scope, Window: window, Throttled: throttled[what]})
	}
	return LimitList{windows, since}, nil
}

// quotas returns the quotas of all scopes known from the configuration. It does not include keys of an issuer, which share one
// setting.
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

// reset resets the counters of a scope, or of the whole organisation.
func (l Limits) reset(ctx context.Context, _ adminapi.Principal, p resetting) (none adminapi.NoContent, err error) {
	org := string(p.Org)
	o := l.Org(org)
	if o == nil {
		return none, adminapi.ErrUnknownOrg
	}
	var ref ratelimit.Ref
	if p.Scope != "" {
		if ref, err = ratelimit.ParseRef(p.Scope); err != nil {
			return none, adminapi.BadRequestError{Reason: err.Error()}
		}
		if err := l.known(ctx, o, ref); err != nil {
			return none, err
		}
	}
	return none, l.Limiter.Reset(ctx, org, ref)
}

// known returns an error unless the scope is configured or was counted today.
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
	return adminapi.BadRequestError{Reason: fmt.Sprintf("organisation %s has no scope %s", o.ID, ref)}
}
