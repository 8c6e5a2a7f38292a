// Package explain describes, stage by stage, how the chain processed an exchange, or how it would process a hypothetical request.
//
// The package knows no stages. Filters explain themselves (filter.Explainer), and the exchange records which stages it entered. A dry run
// executes the same chain with other ports (filter.Ports): it reads from the platform, counts nothing, simulates changes, and lets later
// reads of the same run see them. A new filter is therefore explained without a change here.
package explain
