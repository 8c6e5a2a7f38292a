package alerts

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Exceptions returns the exceptions of an organisation that have an end, sorted by end. It returns adminapi.ErrUnknownOrg if the
// organisation is not configured.
func (t *Alerts) Exceptions(ctx context.Context, org string) ([]Exception, error) {
	o := t.Config().Org(org)
	if o == nil {
		return nil, adminapi.ErrUnknownOrg
	}
	list := t.configured(o)
	granted, err := t.Approvals.Entries(ctx, org)
	if err != nil {
		return nil, err
	}
	for _, e := range granted {
		if r := e.Record; r.State == approval.Granted {
			list = append(list, grantException(org, r))
		}
	}
	noticed, err := t.Notices.Noticed(ctx, org)
	if err != nil {
		return nil, err
	}
	for id, until := range ledger.SnoozedUntil(noticed) {
		list = append(list, Exception{Org: org, Kind: "snooze", ID: id, About: "idle", Until: until.UTC()})
	}
	now := t.Now()
	list = slices.DeleteFunc(list, func(x Exception) bool { return !x.Until.After(now) })
	slices.SortFunc(list, func(a, b Exception) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// configured returns the exceptions and the brownouts in the configuration.
func (t *Alerts) configured(o *settings.Org) (list []Exception) {
	for i := range o.Policies.Exceptions {
		x := &o.Policies.Exceptions[i]
		var of []string
		for kind, ids := range map[string][]string{"team": x.Teams, "key": x.Keys, "role": x.Roles} {
			for _, id := range ids {
				of = append(of, kind+" "+id)
			}
		}
		slices.Sort(of)
		list = append(list, Exception{
			Org: o.ID, Kind: "policy", ID: x.ID, About: x.Policy, For: strings.Join(of, ", "), By: x.GrantedBy, Reason: x.Reason,
			From: timeOf(x.From), Until: x.Until.UTC(),
		})
	}
	for i := range o.Brownouts {
		b := &o.Brownouts[i]
		if b.Until.IsZero() {
			continue // recurs and has no end
		}
		dialects := make([]string, len(b.Dialects))
		for j, d := range b.Dialects {
			dialects[j] = string(d)
		}
		list = append(list, Exception{
			Org: o.ID, Kind: "brownout", ID: b.Until.UTC().Format(time.RFC3339) + " " + strings.Join(dialects, ","),
			About: strings.Join(dialects, ", "), Reason: b.Message, From: timeOf(b.From), Until: b.Until.UTC(),
		})
	}
	return list
}

// grantException returns the exception for a granted approval that has not been used yet.
func grantException(org string, r *approval.Record) Exception {
	x := Exception{
		Org: org, Kind: "approval", ID: r.ID, About: strings.Join(r.RefusedBy(), ", "),
		For: strings.Trim(r.Team+"/"+r.Key, "/"), Until: r.Until.UTC(),
	}
	if a := r.Answer; a != nil {
		x.By, x.Reason, x.From = a.By, a.Reason, timeOf(a.At)
	}
	return x
}

// timeOf returns nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
