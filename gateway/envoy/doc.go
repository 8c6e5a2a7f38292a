// Package envoy configures Envoy proxies in front of the gateways. It derives the configuration of each node group from the gateway's own
// configuration, and serves it to connected Envoys through the discovery service (xDS). A registry in Redis lists the gateways that accept
// requests.
package envoy
