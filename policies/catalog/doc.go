// Package catalog knows what things cost. It keeps the platform's price list
// per organisation (GPU types and CPU flavours, read through Deps.Fetch with
// the organisation's own credential) and prices a call from it.
//
// A price is the worst case over every placement the call allows, in micro-USD per hour, rounded to the nearest.
// It is made of GPUs or vCPUs at the list's prices and of disks at the configured rates (Storage), which no list
// has. A call that cannot be priced is not cheap but unknown: Cost.Known is false and the caller of this package
// must refuse the call if it could cost anything. A price list that is missing, older than Config.MaxAge or
// implausible makes every price unknown.
//
// The package neither reserves nor counts money, and it does not decide: the
// policies read a Cost as input.cost, the ledger reserves it.
//
//	c, err := catalog.New(catalog.DefaultConfig(), catalog.Deps{Fetch: f})
//	...
//	snap, err := c.Snapshot(ctx, "acme")
//	cost := snap.Price("createPod", operation.VerbCreate, after)
package catalog
