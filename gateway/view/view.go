package view

import (
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// View is the configuration in force at one moment. It is immutable, including everything it refers to.
type View struct {
	Config *settings.Config
	// Loaded is the time when Config came into force.
	Loaded time.Time
	// Orgs contains the organisations of Config by ID, including keys created at run time.
	Orgs map[string]*settings.Org
	// Plans contains the budgets of organisations by ID, including budgets of keys created at run time. Organisations without budgets are
	// missing.
	Plans map[string]*ledger.Plan
}

// Current provides the View in force, which is replaced on a reload, and the gateway's clock. Each method loads the view separately. A
// caller that needs several values of one configuration must call Load once. Current is safe for concurrent use.
type Current struct {
	view atomic.Pointer[View]
	now  func() time.Time
}

// New returns a Current with the given clock and no view.
func New(now func() time.Time) *Current { return &Current{now: now} }

// Now returns the current time of the gateway's clock.
func (c *Current) Now() time.Time { return c.now() }

// Load returns the view in force, or nil before the first Set.
func (c *Current) Load() *View { return c.view.Load() }

// Set puts a view in force.
func (c *Current) Set(v *View) { c.view.Store(v) }

// Config returns the configuration in force, or nil before the first Set.
func (c *Current) Config() *settings.Config {
	if v := c.Load(); v != nil {
		return v.Config
	}
	return nil
}

// Org returns an organisation including keys created at run time, or nil if the
// organisation is unknown.
func (c *Current) Org(id string) *settings.Org {
	if v := c.Load(); v != nil {
		return v.Orgs[id]
	}
	return nil
}

// Zone returns the time zone of an organisation, or UTC if the organisation is unknown.
func (c *Current) Zone(org string) ledger.Zone {
	if o := c.Org(org); o != nil {
		return o.Zone
	}
	return ledger.Zone{}
}

// Plan returns the budgets of an organisation, or nil.
func (c *Current) Plan(org string) *ledger.Plan {
	if v := c.Load(); v != nil {
		return v.Plans[org]
	}
	return nil
}

// Budgeted returns the IDs of organisations with budgets, in configuration order.
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
