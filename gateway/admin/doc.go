// Package admin answers the questions of operators and probes to a running gateway:
// liveness, readiness, metrics, profiles, the state of the configuration and
// the limits in use. It has a listener of its own and is never reachable
// through the data listener.
package admin
