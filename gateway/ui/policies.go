package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// policyData is the data of the page of policies.
type policyData struct {
	Policies []policyWeek
	// Counts is why there are no counts, if there are none.
	Counts part[decisions.PolicyCounts]
	// KnowsToday reports whether the refusals of today were read.
	KnowsToday bool
	// Teams are the counts of the week by team.
	Teams []decisions.PolicyCount
	// Held is the audit of the organisation's resources against its policies, if the request asks for it.
	Held *part[explain.Audit]
}

// Count returns a count, "unknown" if the counts could not be read.
func (d policyData) Count(n int64) string {
	if !d.Counts.OK() {
		return "unknown"
	}
	return strconv.FormatInt(n, 10)
}

// policyWeek holds the verdicts of a policy in seven days.
type policyWeek struct {
	Policy string
	// On says that the policy is switched on, Modes in which mode for whom, one for each time.
	On    bool
	Modes []string
	// Today counts the calls that it has refused today, and names the latest.
	Today                                           decisions.RefusalCount
	Refused, WouldRefuse, Warned, Excepted, Changed int64
	// Days are the calls that it would have refused or warned of, by day, the oldest first.
	Days [weekDays]int64
}

// weekDays is how many days the page looks back, today among them.
const weekDays = 7

// Measures of the bars of a week, in units of their own.
const barWidth, barHeight = 10, 20

// Bars draws Days.
func (w policyWeek) Bars() (out []box) {
	top := slices.Max(w.Days[:])
	for i, n := range w.Days {
		if n > 0 {
			height := float64(n) / float64(top) * barHeight
			out = append(out, box{X: coordinate(float64(i*barWidth) + 1), Y: coordinate(barHeight - height), Width: coordinate(barWidth - 2), Height: coordinate(height)})
		}
	}
	return out
}

// Label says in words what Bars draws.
func (w policyWeek) Label() string {
	var days []string
	for _, n := range w.Days {
		days = append(days, strconv.FormatInt(n, 10))
	}
	return "Would refuse or warns, by day until today: " + strings.Join(days, ", ")
}

func policies(v *visit) (any, int, string) {
	var orgs part[admin.Orgs]
	var today part[operator.Overview]
	var d policyData
	together(
		func() { orgs = ask[admin.Orgs](v, "GET /admin/orgs", nil) },
		func() {
			d.Counts = ask[decisions.PolicyCounts](v, "GET /admin/policies/counts", url.Values{"since": {"7d"}, "bucket": {"hour"}})
		},
		func() { today = ask[operator.Overview](v, overviewRow, nil) },
		func() {
			if v.r.FormValue("held") != "" {
				held := ask[explain.Audit](v, auditResources, nil)
				d.Held = &held
			}
		},
	)
	var on []adminapi.Entry
	for _, o := range orgs.Is.Orgs {
		if o.ID == v.org {
			on = o.Entries
		}
	}
	d.Policies, d.Teams = week(on, d.Counts.Is.Counts, today.Is.Refused, v.now())
	d.KnowsToday = today.OK() && today.Is.Knows(operator.PartRefusals)
	return d, orgs.Status, orgs.Fault
}

// week adds up the verdicts of policies: by policy, those that are switched on first, and by team.
func week(on []adminapi.Entry, counts []decisions.PolicyCount, today []decisions.RefusalCount, now time.Time) (list []policyWeek, teams []decisions.PolicyCount) {
	of := func(name string) *policyWeek {
		i := slices.IndexFunc(list, func(w policyWeek) bool { return w.Policy == name })
		if i < 0 {
			i, list = len(list), append(list, policyWeek{Policy: name})
		}
		return &list[i]
	}
	for _, e := range on {
		w := of(e.Policy)
		w.On, w.Modes = true, append(w.Modes, e.Conditions())
	}
	sums := make(map[decisions.PolicyCount]int64)
	for _, c := range counts {
		w := of(c.Policy)
		switch c.Verdict {
		case "denies":
			w.Refused += c.Calls
		case "would deny":
			w.WouldRefuse += c.Calls
		case "warns":
			w.Warned += c.Calls
		case "excepted":
			w.Excepted += c.Calls
		case "changes":
			w.Changed += c.Calls
		}
		if ago := int(now.Sub(c.Hour) / (24 * time.Hour)); (c.Verdict == "would deny" || c.Verdict == "warns") && ago >= 0 && ago < weekDays {
			w.Days[weekDays-1-ago] += c.Calls
		}
		sums[decisions.PolicyCount{Policy: c.Policy, Verdict: c.Verdict, Team: c.Team}] += c.Calls
	}
	for _, r := range today {
		if name, isPolicy := strings.CutPrefix(r.Reason, "policy "); isPolicy {
			of(name).Today = r
		}
	}
	for c, calls := range sums {
		c.Calls = calls
		teams = append(teams, c)
	}
	slices.SortFunc(teams, func(a, b decisions.PolicyCount) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Policy, b.Policy), strings.Compare(a.Verdict, b.Verdict), strings.Compare(a.Team, b.Team))
	})
	return list, teams
}
