package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Fleet knows the gateways that share a store, and their refusals.
type Fleet interface {
	// Gateways lists the running gateways, this one first. With an error the list has this one alone.
	Gateways(ctx context.Context) ([]Instance, error)
	// Refused counts the refusals of today, in the organisation's zone, the most frequent reason first.
	Refused(ctx context.Context, org string) ([]Refused, error)
}

// Instance is a running gateway.
type Instance struct {
	Instance string `json:"instance"`
	Version  string `json:"version"`
	// Revision names the configuration in force, which was loaded at Loaded.
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Fault is why the newest configuration was not taken, empty when it was.
	Fault string `json:"fault,omitempty"`
	// Restart names the settings whose new values require a restart.
	Restart []string `json:"restart,omitempty"`
	// Undelivered describes the records of decisions and changes that a receiver has not taken.
	Undelivered []string `json:"undelivered,omitempty"`
	// Since is when the process began, and Envoys the number that are connected to it.
	Since  time.Time `json:"since"`
	Envoys int       `json:"envoys"`
	// At is when the gateway said so.
	At time.Time `json:"at"`
}

// Refused counts the calls that were refused for one reason. Decision is the latest of them.
type Refused struct {
	Org string `json:"org"`
	// Reason is a policy, a limit, a budget, or a kind of problem.
	Reason   string `json:"reason"`
	Calls    int    `json:"calls"`
	Decision string `json:"decision"`
}

// NearBudget is a budget that is taken by at least nearPercent, or that is expected to be used up before its period ends.
type NearBudget struct {
	Org     string `json:"org"`
	Scope   string `json:"scope"`
	Percent int    `json:"percent"`
	Budget
}

// gatewayList is gateways as they are answered.
type gatewayList struct {
	Gateways []Instance `json:"gateways"`
	// Incomplete is why there may be others.
	Incomplete string `json:"incomplete,omitempty"`
}

func (d Deps) overviewRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/overview", Summary: "The entries that need attention: gateways, requests for approval, budgets, refusals, idle money, drift", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.overview),
			Commands: []row.Command{{
				Use: "status", Short: "Show the entries that need attention: gateways, approvals, budgets, refusals, idle money, drift", Example: "tollgate status\ntollgate status --org acme -o json",
				Long: `Shows the gateways that share a Redis, with their versions and revisions; requests
that wait for approval; budgets that are nearly used up; the refusals of today and
their reasons; the cost of idle resources; and where a ledger may differ from the
platform. The column undelivered has the records of decisions and changes that a
receiver has not taken, or that were dropped.`,
			}},
		},
		{
			Pattern: "GET /admin/gateways", Summary: "The gateways that share a store", Role: row.Viewer, Ask: row.Do(d.gateways),
			Commands: []row.Command{{Use: "gateways", Short: "List the gateways that share a store, with version, revision, age and Envoys", Example: "tollgate gateways"}},
		},
	}
}

func (d Deps) gateways(ctx context.Context, _ row.Scope, _ row.None) (gatewayList, error) {
	list, err := d.Fleet.Gateways(ctx)
	out := gatewayList{Gateways: list}
	if err != nil {
		out.Incomplete = "the shared store does not answer: this is the gateway that was asked"
	}
	return out, nil
}

// nearPercent is the share of a budget, in percent, from which it is near its end.
const nearPercent = 80

// IdleMoney is the cost of an organisation's idle resources, in USD a month.
type IdleMoney struct {
	Org       string `json:"org"`
	Resources int    `json:"resources"`
	PerMonth  string `json:"perMonth"`
}

// Drift is a ledger that may differ from the platform: it is not complete, or it has resources without an owner, or holds with an unknown
// outcome.
type Drift struct {
	Org      string `json:"org"`
	Complete bool   `json:"complete"`
	Unowned  int    `json:"unowned"`
	Open     int    `json:"open"`
}

// Overview is the first screen of an operator. Each list has the entries that need attention, and is empty without any.
type Overview struct {
	At time.Time `json:"at"`
	// Gateways is empty for askers bound to an organisation.
	Gateways []Instance `json:"gateways"`
	// Approvals wait for an answer.
	Approvals []PendingApproval `json:"approvals"`
	Budgets   []NearBudget      `json:"budgets"`
	Refused   []Refused         `json:"refused"`
	Idle      []IdleMoney       `json:"idle"`
	Drift     []Drift           `json:"drift"`
	// Off names the parts that the configuration switches off.
	Off []string `json:"off,omitempty"`
	// Unknown names the parts that could not be read, and why; see Knows.
	Unknown []string `json:"unknown"`
}

// The parts of an Overview that may be unknown.
const (
	PartGateways  = "other gateways"
	PartApprovals = "requests for approval"
	PartBudgets   = "budgets"
	PartIdle      = "idle resources"
	PartRefusals  = "refusals"
)

// Knows reports whether a part was read, for all organisations. Otherwise an empty list does not mean that there is nothing.
func (o *Overview) Knows(part string) bool {
	return !slices.ContainsFunc(slices.Concat(o.Unknown, o.Off), func(not string) bool { return strings.HasPrefix(not, part) })
}

// PartsTime bounds how long the parts of an answer, or of a page, are waited for. They are read at once.
const PartsTime = 4 * time.Second

// partsAtOnce bounds how many parts of an overview are read at once.
const partsAtOnce = 32

// orgParts are the parts of the overview of one organisation.
type orgParts struct {
	org       string
	approvals []PendingApproval
	ledger    *Ledger
	idle      *IdleList
	refused   []Refused

	approvalsErr, ledgerErr, idleErr, refusedErr error
}

// reads returns the functions that read the parts.
func (p *orgParts) reads(ctx context.Context, d *Deps) []func() {
	return []func(){
		func() { p.approvals, p.approvalsErr = d.Approvals.Pending(ctx, p.org) },
		func() { p.ledger, p.ledgerErr = d.Spend.Show(ctx, p.org) },
		func() { p.idle, p.idleErr = d.Spend.Idle(ctx, p.org) },
		func() { p.refused, p.refusedErr = d.Fleet.Refused(ctx, p.org) },
	}
}

func (d Deps) overview(ctx context.Context, s row.Scope, p anyOrg) (*Overview, error) {
	ctx, cancel := context.WithTimeout(ctx, PartsTime)
	defer cancel()
	o := &Overview{At: s.Now.UTC(), Gateways: []Instance{}, Approvals: []PendingApproval{}, Budgets: []NearBudget{}, Refused: []Refused{}, Idle: []IdleMoney{}, Drift: []Drift{}, Unknown: []string{}}
	var reads []func()
	var gatewaysErr error
	if s.Org == "" {
		reads = append(reads, func() { o.Gateways, gatewaysErr = d.Fleet.Gateways(ctx) })
	}
	var orgs []*orgParts
	for _, t := range s.Visible() {
		if p.Org == "" || string(p.Org) == t.ID {
			of := &orgParts{org: t.ID}
			orgs, reads = append(orgs, of), append(reads, of.reads(ctx, &d)...)
		}
	}
	var group errgroup.Group
	group.SetLimit(partsAtOnce)
	for _, read := range reads {
		group.Go(func() error { return panics.Catch(read) })
	}
	panics.Raise(group.Wait()) // each part has its own error
	o.missed(PartGateways, gatewaysErr)
	var idleOff []string
	for _, of := range orgs {
		o.add(of)
		if _, off := errors.AsType[row.BadRequestError](of.idleErr); off {
			idleOff = append(idleOff, of.org)
		}
	}
	if n := len(idleOff); n > 0 {
		of := idleOff[0]
		if n > 1 {
			of = strconv.Itoa(n) + " organisations"
		}
		o.Off = append(o.Off, PartIdle+" of "+of+", without idle.for")
	}
	slices.SortStableFunc(o.Budgets, func(a, b NearBudget) int { return cmp.Compare(b.Percent, a.Percent) })
	return o, nil
}

// missed notes a part that could not be read. A BadRequestError is no such fault: the organisation has no budgets, or looks for nothing idle.
func (o *Overview) missed(what string, err error) {
	if _, none := errors.AsType[row.BadRequestError](err); err != nil && !none {
		o.Unknown = append(o.Unknown, what+": the shared store does not answer")
	}
}

// add adds the entries of an organisation.
func (o *Overview) add(p *orgParts) {
	o.missed(PartBudgets+" of "+p.org, p.ledgerErr)
	if p.ledgerErr == nil {
		o.near(p.org, p.ledger)
		o.drifted(p.org, p.ledger)
	}
	o.missed(PartApprovals+" of "+p.org, p.approvalsErr)
	o.Approvals = append(o.Approvals, p.approvals...)
	o.missed(PartIdle+" of "+p.org, p.idleErr)
	if p.idleErr == nil && len(p.idle.Resources) > 0 {
		var sum float64
		for _, r := range p.idle.Resources {
			sum += decimal(r.PerMonth)
		}
		o.Idle = append(o.Idle, IdleMoney{p.org, len(p.idle.Resources), strconv.FormatFloat(sum, 'f', 2, 64)})
	}
	o.missed(PartRefusals+" of "+p.org, p.refusedErr)
	o.Refused = append(o.Refused, p.refused...)
}

func newNearBudget(org, scope string, budget Budget) NearBudget {
	n := NearBudget{org, scope, 100, budget}
	if limit := decimal(budget.Limit); limit > 0 {
		n.Percent = int(100 * (decimal(budget.Used) + decimal(budget.Reserved)) / limit)
	}
	return n
}

func (o *Overview) near(org string, l *Ledger) {
	for _, b := range l.Scopes {
		for _, budget := range b.Budgets {
			n := newNearBudget(org, b.Scope, budget)
			if n.Percent >= nearPercent || budget.UsedUp != "" {
				o.Budgets = append(o.Budgets, n)
			}
		}
	}
}

func (o *Overview) drifted(org string, l *Ledger) {
	d := Drift{Org: org, Complete: l.Complete}
	for _, r := range l.Resources {
		if r.Team+r.Key == "" {
			d.Unowned++
		}
	}
	for _, h := range l.Holds {
		if h.Open {
			d.Open++
		}
	}
	if !d.Complete || d.Unowned+d.Open > 0 {
		o.Drift = append(o.Drift, d)
	}
}

// decimal reads an amount of ours.
func decimal(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // it was written by us
	return n
}
