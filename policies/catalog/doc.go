// Package catalog computes prices. It caches the platform's price list of GPU types and CPU flavours for each organisation, read
// through Deps.Fetch with the organisation's credential, and prices calls with it.
//
// A price is the highest price over every placement that the call allows, in micro-USD per hour, rounded to the nearest. It is the sum of
// GPUs or vCPUs at list prices, and of disks at the configured rates (Storage), which the platform does not list. If a call cannot be
// priced, Cost.Known is false, and callers must refuse the call if it could cost anything. If the price list is missing, older than
// Config.MaxAge or implausible, every price is unknown.
//
// The package neither reserves nor counts money and makes no decisions: policies read a Cost as input.cost, and the ledger reserves
// it.
//
//	c, err := catalog.New(catalog.DefaultConfig(), catalog.Deps{Fetch: f})
//	...
//	snap, err := c.Snapshot(ctx, "acme")
//	cost := snap.Price("createPod", operation.VerbCreate, after)
package catalog
