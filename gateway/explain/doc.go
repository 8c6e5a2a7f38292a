// Package explain says in words what a chain did to an exchange, stage by stage,
// and what it would do to a request that was not made.
//
// It knows no stage: filters say their own notes (filter.Noter), and the chain
// records which stages were entered. A dry run is the same chain on other ports
// (filter.Ports): reads are made, nothing is counted, nothing that changes
// anything is sent, and later reads of the same run see what it would have
// changed. So a new filter is explained without an edit here.
package explain
