// Package envoy connects Envoys with gateways: the groups of the configuration as xds has them, and the registry of gateways that are ready.
package envoy
