// Package explain says in words how a chain treated an exchange, stage by stage,
// and how it would treat a request that was not made.
//
// It knows no stage: filters say their own notes (filter.Explainer), and the chain
// records which stages were entered. A dry run is the same chain on other ports
// (filter.Ports): reads are made, nothing is counted, nothing that changes
// anything is sent, and later reads of the same run see its simulated
// changes. So a new filter is explained without an edit here.
package explain
