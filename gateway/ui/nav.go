package ui

import (
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// navGroup is a group of links in the navigation. The first group has no title.
type navGroup struct {
	Title string
	Links []link
}

// link links to a page of the console.
type link struct {
	Title, Path, Icon string
	// Here marks the current page.
	Here bool
	// Badge is the number of entries that need attention, and Needs describes them.
	Badge int
	Needs string
}

// Nav returns the navigation with the pages that the principal may access. It is empty before login.
func (f *frame) Nav() (out []navGroup) {
	if f.scope.Name == "" {
		return nil
	}
	for _, p := range f.pages {
		if p.icon == "" || p.asks != "" && !f.may(p.asks) || p.lead && !f.session.Lead {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Title != p.group {
			out = append(out, navGroup{Title: p.group})
		}
		l := link{Title: p.title, Path: f.Link(strings.TrimSuffix(p.below(), first)), Icon: p.icon, Here: p.name == f.Page}
		l.Badge, l.Needs = f.badges.of(p.name)
		group := &out[len(out)-1]
		group.Links = append(group.Links, l)
	}
	return out
}

// badges counts the entries that need attention: approval requests, resources with an uncertain state in the ledger, gateways with a
// problem, and parts of the overview that could not be read.
type badges struct {
	approvals, drift, gateways, sources int
	read                                time.Time
}

// of returns the badge of a page and a description of what it counts.
func (b badges) of(page string) (n int, needs string) {
	switch page {
	case "approvals":
		return b.approvals, "pending"
	case "resources":
		return b.drift, "with drift"
	case "gateways":
		return b.gateways + b.sources, "with a problem"
	}
	return 0, ""
}

// badgesTime is the lifetime of cached badges. The number of approval requests is not cached.
const badgesTime = 15 * time.Second

// boundTo is a prefix of the cache keys of principals that are bound to an organisation. Their badges exclude gateways.
const boundTo = "bound to "

// forgetBadges removes the badges of the organisation from the cache after an action.
func (v *visit) forgetBadges() {
	v.problems.Delete(v.org)
	v.problems.Delete(boundTo + v.org)
}

// readBadges sets the badges of the page. The calls are not recorded in the audit log, because they only count records.
func (v *visit) readBadges() {
	if v.unrecorded == nil || v.org == "" {
		return
	}
	var waiting int
	var rest badges
	together(
		func() { waiting = v.pending() },
		func() { rest = v.countProblems() },
	)
	v.badges = rest
	v.badges.approvals = waiting
}

// pending returns the number of pending approval requests, or 0 if the store is unavailable.
func (v *visit) pending() (n int) {
	if !v.may(approvalList) {
		return 0
	}
	list, _ := adminapi.Call[approval.List](v.r.Context(), v.unrecorded, approvalList, v.scope, url.Values{"org": {v.org}}, nil)
	for i := range list.Approvals {
		if list.Approvals[i].State == approval.Pending {
			n++
		}
	}
	return n
}

// countProblems returns the problems in the overview: of the ledger, of gateways, and of parts that could not be read.
func (v *visit) countProblems() badges {
	name := v.org
	if v.scope.Org != "" {
		name = boundTo + v.org
	}
	if !v.may(overviewRow) {
		return badges{}
	}
	kept, _ := v.problems.Load(name)
	b, ok := kept.(badges)
	if age := v.now().Sub(b.read); ok && age >= 0 && age < badgesTime {
		return b
	}
	o, err := adminapi.Call[operator.Overview](v.r.Context(), v.unrecorded, overviewRow, v.scope, url.Values{"org": {v.org}}, nil)
	if err != nil {
		return badges{}
	}
	b = problemsOf(&o, v.now())
	v.problems.Store(name, b)
	return b
}

// problemsOf counts the entries of an overview that need attention, except for approval requests.
func problemsOf(o *operator.Overview, now time.Time) badges {
	b := badges{sources: len(o.Unknown), read: now}
	for _, d := range o.Drift {
		b.drift += d.Unowned + d.Open
		if !d.Complete {
			b.drift++
		}
	}
	for i := range o.Gateways {
		if g := &o.Gateways[i]; g.Fault != "" || len(g.Restart)+len(g.Undelivered) > 0 {
			b.gateways++
		}
	}
	return b
}
