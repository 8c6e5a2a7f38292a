// Package envoy holds what must be true of a real Envoy in front of the
// gateway's ext_proc server. The tests start the bootstrap that deploy/envoy.yaml
// ships, with addresses of the moment, and play requests through it to the
// emulated platform. There is no code here but tests.
//
// They need an Envoy: TOLLGATE_ENVOY, .tools/bin/envoy of this repository or
// envoy in PATH, in this order. Without one they are skipped, or fail when
// TOLLGATE_REQUIRE_ENVOY is set.
//
// It takes more than a minute: gateways that end wait for Envoys to notice, and an Envoy
// notices a network that delivers nothing by its pings, both on the settings that ship.
package envoy
