package alerts

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// expiryLook is the interval between checks for exceptions that end soon.
	expiryLook = time.Hour
	// defaultExpiry is the default time between the alert and the end of an exception.
	defaultExpiry = 72 * time.Hour
)

// expiring is the alert about an exception that ends soon.
type expiring struct {
	Org       string    `json:"org"`
	Exception string    `json:"exception"`
	Policy    string    `json:"policy"`
	Until     time.Time `json:"until"`
	Reason    string    `json:"reason"`
	GrantedBy string    `json:"granted_by"`
}

// WatchExceptions sends alerts about exceptions that end soon, at the start and every hour, while this gateway is the leader.
func (t *Alerts) WatchExceptions(ctx context.Context, notices ledger.NoticeStore, lead func(context.Context) bool) error {
	return tasks.Every(expiryLook, func(ctx context.Context) {
		for _, o := range t.Config().Orgs {
			if len(o.Policies.Exceptions) == 0 || !lead(ctx) {
				continue
			}
			if err := t.notifyExpiring(ctx, notices, &o); err != nil && ctx.Err() == nil {
				t.Logger.WarnContext(ctx, "cannot send the alert for an exception that ends soon", "org", o.ID, "error", err.Error())
			}
		}
	})(ctx)
}

// notifyExpiring sends an alert for each exception of an organisation that ends soon, once for each end time. A failed alert is retried at
// the next check.
func (t *Alerts) notifyExpiring(ctx context.Context, notices ledger.NoticeStore, o *settings.Org) error {
	const prefix, kind = "exception:", "exception.expiring"
	noticed, err := notices.Noticed(ctx, o.ID)
	if err != nil {
		return err
	}
	for name := range noticed {
		id, is := strings.CutPrefix(name, prefix)
		if is && !slices.ContainsFunc(o.Policies.Exceptions, func(x policies.Exception) bool { return x.ID == id }) {
			if err := notices.Notice(ctx, o.ID, name, ""); err != nil {
				return err
			}
		}
	}
	now := t.Now()
	for _, x := range o.Policies.Exceptions {
		until, left := x.Until.UTC().Format(time.RFC3339), x.Until.Sub(now)
		if left <= 0 || left > cmp.Or(o.Alerts.Exceptions, defaultExpiry) || noticed[prefix+x.ID] == until {
			continue
		}
		err := t.deliver(ctx, o.ID, strings.Join([]string{kind, o.ID, x.ID, until}, ":"), kind, now, expiring{
			Org: o.ID, Exception: x.ID, Policy: x.Policy, Until: x.Until.UTC(), Reason: x.Reason, GrantedBy: x.GrantedBy,
		})
		if err != nil {
			return err
		}
		t.Logger.WarnContext(ctx, "exception will end soon", "event", kind, "org", o.ID, "exception", x.ID, "policy", x.Policy, "until", until)
		if err := notices.Notice(ctx, o.ID, prefix+x.ID, until); err != nil {
			return err
		}
	}
	return nil
}
