package operator

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
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// Sources read the parts of an overview. The zero value describes its row.
type Sources struct {
	// Gateways lists the running gateways, this one first. With an error the list has this one alone.
	Gateways func(ctx context.Context) ([]Instance, error)
	// Pending lists the requests for approval of an organisation that wait for an answer.
	Pending func(ctx context.Context, org string) ([]approval.PendingApproval, error)
	// Show and Idle return the ledger of an organisation and its idle resources. The error is a [row.BadRequestError] where there are none.
	Show func(ctx context.Context, org string) (*money.Ledger, error)
	Idle func(ctx context.Context, org string) (*money.IdleList, error)
	// Refused counts the refusals of today.
	Refused func(ctx context.Context, org string) ([]decisions.Refused, error)
}

// Rows are the questions of operators about all parts at once.
func (from Sources) Rows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/overview", Summary: "The entries that need attention: gateways, requests for approval, budgets, refusals, idle money, drift", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(from.read),
			Commands: []row.Command{{
				Use: "status", Short: "Show the entries that need attention: gateways, approvals, budgets, refusals, idle money, drift", Example: "tollgate status\ntollgate status --org acme -o json",
				Long: `Shows the gateways that share a Redis, with their versions and revisions; requests
that wait for approval; budgets that are nearly used up; the refusals of today and
their reasons; the cost of idle resources; and where a ledger may differ from the
platform. The column undelivered has the records of decisions and changes that a
receiver has not taken, or that were dropped; the column unserved has the operations of
the platform's description that the gateway does not know.`,
			}},
		},
	}
}

// nearPercent is the share of a budget, in percent, from which it is near its end.
const nearPercent = 80

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
	Approvals []approval.PendingApproval `json:"approvals"`
	Budgets   []money.NearBudget         `json:"budgets"`
	Refused   []decisions.Refused        `json:"refused"`
	Idle      []money.IdleCost           `json:"idle"`
	Drift     []Drift                    `json:"drift"`
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
	approvals []approval.PendingApproval
	ledger    *money.Ledger
	idle      *money.IdleList
	refused   []decisions.Refused

	approvalsErr, ledgerErr, idleErr, refusedErr error
}

// reads returns the functions that read the parts.
func (p *orgParts) reads(ctx context.Context, from *Sources) []func() {
	return []func(){
		func() { p.approvals, p.approvalsErr = from.Pending(ctx, p.org) },
		func() { p.ledger, p.ledgerErr = from.Show(ctx, p.org) },
		func() { p.idle, p.idleErr = from.Idle(ctx, p.org) },
		func() { p.refused, p.refusedErr = from.Refused(ctx, p.org) },
	}
}

func (from Sources) read(ctx context.Context, s row.Scope, p row.AnyOrg) (*Overview, error) {
	ctx, cancel := context.WithTimeout(ctx, PartsTime)
	defer cancel()
	o := &Overview{At: s.Now.UTC(), Gateways: []Instance{}, Approvals: []approval.PendingApproval{}, Budgets: []money.NearBudget{}, Refused: []decisions.Refused{}, Idle: []money.IdleCost{}, Drift: []Drift{}, Unknown: []string{}}
	var reads []func()
	var gatewaysErr error
	if s.Org == "" {
		reads = append(reads, func() { o.Gateways, gatewaysErr = from.Gateways(ctx) })
	}
	var orgs []*orgParts
	for _, t := range s.Visible() {
		if p.Org == "" || string(p.Org) == t.ID {
			of := &orgParts{org: t.ID}
			orgs, reads = append(orgs, of), append(reads, of.reads(ctx, &from)...)
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
	slices.SortStableFunc(o.Budgets, func(a, b money.NearBudget) int { return cmp.Compare(b.Percent, a.Percent) })
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
	if p.idleErr == nil {
		if sum := p.idle.Sum(p.org, ""); sum != nil {
			o.Idle = append(o.Idle, *sum)
		}
	}
	o.missed(PartRefusals+" of "+p.org, p.refusedErr)
	o.Refused = append(o.Refused, p.refused...)
}

func (o *Overview) near(org string, l *money.Ledger) {
	for _, b := range l.Scopes {
		for _, budget := range b.Budgets {
			n := budget.ForScope(org, b.Scope)
			if n.Percent >= nearPercent || budget.UsedUp != "" {
				o.Budgets = append(o.Budgets, n)
			}
		}
	}
}

func (o *Overview) drifted(org string, l *money.Ledger) {
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
