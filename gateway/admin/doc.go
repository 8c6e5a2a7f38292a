// Package admin is the operators' listener of a running gateway. [Deps] has its rows: probes, metrics, profiles, the description of the API,
// and the rows of features. [Guard] identifies operators, checks their roles and records what they ask and change. The listener has an address of
// its own and is never reachable through the data listener.
package admin
