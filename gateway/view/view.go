package view

import (
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// View is the configuration that was in force at one time, with derived values. A View and all values to which it refers are immutable.
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

// Current provides the View in force and the gateway's clock. The View is replaced when the configuration is reloaded. Each method loads
// the View separately, so a caller that needs several values of the same configuration must call [Current.Load] once. Current is safe for
// concurrent use.
type Current struct {
	view atomic.Pointer[View]
	now  func() time.Time
}

// New returns a Current without a View. now is the gateway's clock.
func New(now func() time.Time) *Current { return &Current{now: now} }

// Now returns the current time of the gateway's clock.
func (c *Current) Now() time.Time { return c.now() }

// Load returns the View in force, or nil if Set was not called yet.
func (c *Current) Load() *View { return c.view.Load() }

// Set puts a view in force.
func (c *Current) Set(v *View) { c.view.Store(v) }

// Config returns the configuration in force, or nil if Set was not called yet.
func (c *Current) Config() *settings.Config {
	if v := c.Load(); v != nil {
		return v.Config
	}
	return nil
}

// Org returns the organisation with the given ID, including keys created at run time. It returns nil if the organisation does not exist.
func (c *Current) Org(id string) *settings.Org {
	if v := c.Load(); v != nil {
		return v.Orgs[id]
	}
	return nil
}

// OrgIDs returns the IDs of the organisations in the order of the configuration, or only the given one if it exists. "" means all.
func (c *Current) OrgIDs(only string) (ids []string) {
	for _, o := range c.Config().Orgs {
		if only == "" || o.ID == only {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Zone returns the time zone of an organisation. It returns UTC if the organisation does not exist.
func (c *Current) Zone(org string) ledger.Zone {
	if o := c.Org(org); o != nil {
		return o.Zone
	}
	return ledger.Zone{}
}

// Plan returns the budgets of an organisation. It returns nil if the organisation has no budgets.
func (c *Current) Plan(org string) *ledger.Plan {
	if v := c.Load(); v != nil {
		return v.Plans[org]
	}
	return nil
}

// Budgeted returns the IDs of the organisations that have budgets, in the order of the configuration.
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
