// Package parity holds the behaviour table: what callers may expect of the
// gateway, case by case, played through the HTTP door and the Envoy door. Both
// must give the same status, headers and body, and leave the same requests at
// the platform. There is no code here but tests.
package parity
