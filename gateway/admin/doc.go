// Package admin serves what operators and probes ask a running gateway:
// liveness, readiness, metrics, profiles, the state of the configuration and
// the limits in use. It has a listener of its own and is never reachable
// through the data listener.
package admin
