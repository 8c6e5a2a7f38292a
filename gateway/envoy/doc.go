// Package envoy is how Envoys are told of gateways: the groups of the configuration as xds has them, and the registry of gateways that are ready.
package envoy
