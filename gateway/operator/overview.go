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
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// OverviewSources holds the functions that read the parts of an overview. The endpoint of a
// zero OverviewSources can be listed but not called.
type OverviewSources struct {
	// Gateways returns the running gateways, this one first. If it returns an error, the list contains only this gateway.
	Gateways func(ctx context.Context) ([]Instance, error)
	// Pending returns the pending approval requests of an organisation.
	Pending func(ctx context.Context, org string) ([]approval.PendingApproval, error)
	// Show returns the ledger of an organisation, and Idle its idle resources. They return an [adminapi.BadRequestError] if the
	// organisation has none.
	Show func(ctx context.Context, org string) (*money.Ledger, error)
	Idle func(ctx context.Context, org string) (*money.IdleList, error)
	// Refused counts today's refusals.
	Refused func(ctx context.Context, org string) ([]decisions.RefusalCount, error)
}

// Endpoints returns the endpoint that combines all parts.
func (from OverviewSources) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/overview", Summary: "Entries that need attention: gateways, pending approvals, budgets, refusals, cost of idle resources, drift", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(from.read),
			Commands: []adminapi.Command{{
				Use: "status", Heading: "Operate", Short: "Show what needs attention: gateways, approvals, budgets, refusals, cost of idle resources, drift",
				Example: "tollgate status\ntollgate status --org acme -o json",
				Long: `Shows the gateways that share a Redis, with their versions and revisions; pending
approval requests; budgets that are nearly used up; today's refusals and their reasons;
the cost of idle resources; and ledgers that may differ from the platform. The column
undelivered lists records of decisions and changes that a receiver has not accepted or
that were dropped, and log files that cannot be rotated. The column unserved lists
operations in the platform's description that the gateway does not know.`,
			}},
		},
	}
}

// Drift describes an organisation's ledger that may differ from the platform's records. Complete is false while the ledger is incomplete.
// Unowned is the number of resources without an owner. Open is the number of reservations for calls whose outcome is unknown.
type Drift struct {
	Org      string `json:"org"`
	Complete bool   `json:"complete"`
	Unowned  int    `json:"unowned"`
	Open     int    `json:"open"`
}

// Overview summarises the state of the gateways for operators. Each list contains only entries
// that need attention.
type Overview struct {
	At time.Time `json:"at"`
	// Gateways is empty for principals bound to an organisation.
	Gateways []Instance `json:"gateways"`
	// Approvals lists pending approval requests.
	Approvals []approval.PendingApproval `json:"approvals"`
	Budgets   []money.NearBudget         `json:"budgets"`
	Refused   []decisions.RefusalCount   `json:"refused"`
	Idle      []money.IdleCost           `json:"idle"`
	Drift     []Drift                    `json:"drift"`
	// Off lists the parts that are disabled by the configuration.
	Off []string `json:"off,omitempty"`
	// Unknown lists the parts that could not be read, each as a Part constant, optionally followed by an organisation, and the reason; see
	// Knows.
	Unknown []string `json:"unknown"`
}

// Parts of an Overview that can be unknown.
const (
	PartGateways  = "other gateways"
	PartApprovals = "requests for approval"
	PartBudgets   = "budgets"
	PartIdle      = "idle resources"
	PartRefusals  = "refusals"
)

// Knows reports whether the given part of the overview was read for all organisations. If it was not, the list can be incomplete.
func (o *Overview) Knows(part string) bool {
	return !slices.ContainsFunc(slices.Concat(o.Unknown, o.Off), func(not string) bool { return strings.HasPrefix(not, part) })
}

// PartsTime is the maximum time to collect the parts of a response or page. The parts are collected concurrently.
const PartsTime = 4 * time.Second

// partsAtOnce limits the number of parts read concurrently.
const partsAtOnce = 32

// concurrently calls functions that read parts. Each function keeps its own error.
func concurrently(reads []func()) {
	var group errgroup.Group
	group.SetLimit(partsAtOnce)
	for _, read := range reads {
		group.Go(func() error { return panics.Catch(read) })
	}
	panics.Raise(group.Wait())
}

// orgParts holds the parts of the overview for one organisation.
type orgParts struct {
	org       string
	approvals []approval.PendingApproval
	ledger    *money.Ledger
	idle      *money.IdleList
	refused   []decisions.RefusalCount

	approvalsErr, ledgerErr, idleErr, refusedErr error
}

// reads returns the functions that read the parts.
func (p *orgParts) reads(ctx context.Context, from *OverviewSources) []func() {
	return []func(){
		func() { p.approvals, p.approvalsErr = from.Pending(ctx, p.org) },
		func() { p.ledger, p.ledgerErr = from.Show(ctx, p.org) },
		func() { p.idle, p.idleErr = from.Idle(ctx, p.org) },
		func() { p.refused, p.refusedErr = from.Refused(ctx, p.org) },
	}
}

func (from OverviewSources) read(ctx context.Context, s adminapi.Principal, p adminapi.OptionalOrg) (*Overview, error) {
	ctx, cancel := context.WithTimeout(ctx, PartsTime)
	defer cancel()
	o := &Overview{
		At: s.Now.UTC(), Gateways: []Instance{}, Approvals: []approval.PendingApproval{}, Budgets: []money.NearBudget{},
		Refused: []decisions.RefusalCount{}, Idle: []money.IdleCost{}, Drift: []Drift{}, Unknown: []string{},
	}
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
	concurrently(reads)
	o.missed(PartGateways, gatewaysErr)
	var idleOff []string
	for _, of := range orgs {
		o.add(of)
		if _, off := errors.AsType[adminapi.BadRequestError](of.idleErr); off {
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

// missed records a part that could not be read. It ignores a BadRequestError, which means that no budgets are set or that idle detection is
// off.
func (o *Overview) missed(what string, err error) {
	if _, none := errors.AsType[adminapi.BadRequestError](err); err != nil && !none {
		o.Unknown = append(o.Unknown, what+": shared store unavailable")
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
			if budget.AtRisk() {
				o.Budgets = append(o.Budgets, budget.ForScope(org, b.Scope))
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
