// Package envoy configures Envoy proxies in front of the gateways. Their configuration is derived from the gateway's own configuration, and
// served to connected Envoys by node group through the discovery service (xDS). A registry in Redis lists the gateways that are ready for
// requests.
package envoy
