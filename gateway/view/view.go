package view

import (
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// View is what is in force at one moment. A View and everything that it refers to is immutable.
type View struct {
	Config *settings.Config
	// Loaded is when Config came into force.
	Loaded time.Time
	// Orgs are the organisations of Config by id, with the keys made at run time that are in force.
	Orgs map[string]*settings.Org
	// Plans are the budgets of organisations by id, with those of the same keys; an organisation without budgets has none.
	Plans map[string]*ledger.Plan
	// Replacements maps each operation of v1 to the operations of v2 that replace it.
	Replacements map[string][]string
}

// Current is the view in force, which a reload replaces, and the clock by which the gateway works. Its methods each load the view: a caller
// that needs two facts of one configuration loads it once. Current is safe for concurrent use.
type Current struct {
	view atomic.Pointer[View]
	now  func() time.Time
}

// New returns a Current that has a clock and no view yet.
func New(now func() time.Time) *Current { return &Current{now: now} }

// Now returns the time by the clock of the gateway.
func (c *Current) Now() time.Time { return c.now() }

// Load returns the view in force, nil before the first.
func (c *Current) Load() *View { return c.view.Load() }

// Set puts a view in force.
func (c *Current) Set(v *View) { c.view.Store(v) }

// Config returns the configuration in force, nil before the first.
func (c *Current) Config() *settings.Config {
	if v := c.Load(); v != nil {
		return v.Config
	}
	return nil
}

// Org returns an organisation with its keys made at run time, nil for none.
func (c *Current) Org(id string) *settings.Org {
	if v := c.Load(); v != nil {
		return v.Orgs[id]
	}
	return nil
}

// Zone returns when the days and months of an organisation begin, UTC for an unknown one.
func (c *Current) Zone(org string) ledger.Zone {
	if o := c.Org(org); o != nil {
		return o.Zone
	}
	return ledger.Zone{}
}

// Plan returns the budgets of an organisation, nil for none.
func (c *Current) Plan(org string) *ledger.Plan {
	if v := c.Load(); v != nil {
		return v.Plans[org]
	}
	return nil
}

// Budgeted returns the organisations that have budgets, in the order of the configuration.
func (c *Current) Budgeted() (ids []string) {
	v := c.Load()
	if v == nil {
		return nil
	}
	for i := range v.Config.Orgs {
		if id := v.Config.Orgs[i].ID; v.Plans[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}
