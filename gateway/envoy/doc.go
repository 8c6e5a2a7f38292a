// Package envoy configures Envoys. Their configuration is a function of the gateway's own; the server of the discovery services (xDS)
// sends it to the Envoys that connect, by group. A registry in Redis lists the gateways that are ready for Envoys to call.
package envoy
