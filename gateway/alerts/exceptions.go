package alerts

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// expiryLook is how often it is looked for exceptions that end soon.
	expiryLook = time.Hour
	// defaultExpiry is how long before its end an exception is told of.
	defaultExpiry = 72 * time.Hour
)

// expiring is the alert about an exception that ends.
type expiring struct {
	Org       string    `json:"org"`
	Exception string    `json:"exception"`
	Policy    string    `json:"policy"`
	Until     time.Time `json:"until"`
	Reason    string    `json:"reason"`
	GrantedBy string    `json:"granted_by"`
}

// WatchExceptions tells of exceptions that end soon, at the start and each hour, as
// long as this gateway leads.
func (t *Alerts) WatchExceptions(ctx context.Context, notices ledger.NoticeStore, lead func(context.Context) bool) error {
	tick := time.NewTicker(expiryLook)
	defer tick.Stop()
	for {
		for _, o := range t.Config().Orgs {
			if len(o.Policies.Exceptions) == 0 || !lead(ctx) {
				continue
			}
			if err := t.notifyExpiring(ctx, notices, &o); err != nil && ctx.Err() == nil {
				t.Logger.WarnContext(ctx, "the end of an exception could not be told of", "org", o.ID, "error", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// notifyExpiring tells of the exceptions of an organisation that end soon, once for each
// end they are given. An alert that could not be delivered is sent again at the next look.
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
		t.Logger.WarnContext(ctx, "an exception ends soon", "event", kind, "org", o.ID, "exception", x.ID, "policy", x.Policy, "until", until)
		if err := notices.Notice(ctx, o.ID, prefix+x.ID, until); err != nil {
			return err
		}
	}
	return nil
}
