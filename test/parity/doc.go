// Package parity holds the behaviour table: the answers that callers may expect of the gateway,
// case by case, played through the HTTP door and the Envoy door. Both must give the same status,
// headers and body, and leave the same requests at the platform. There is no code here but tests.
//
// It takes more than a minute: it opens hundreds of gateways, each of which
// compiles its policies, and creates without an answer are looked for by the machine's clock.
package parity
