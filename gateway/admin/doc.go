// Package admin implements the admin listener of a gateway. [Deps] provides its endpoints: probes, metrics, profiles, the API
// description, and the endpoints of other packages. [Guard] authenticates operators, checks their roles, and audits their reads and
// changes. The listener has its own address and is never reachable through the data listener.
package admin
