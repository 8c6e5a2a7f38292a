// Package xds makes Envoy's configuration from tollgate's and serves it.
//
// [Group.Snapshot] is a pure function: the same group and gateways give the same
// resources, byte for byte, and the versions are digests of their content. Its result is
// consistent and has passed Envoy's own validators, those of the messages packed into
// others included. docs/envoy.md explains every setting.
//
// A [Server] serves snapshots by the aggregated discovery service, incremental
// variant only: the state-of-the-world variant of go-control-plane v0.14 loses
// watches. A node belongs to the group that its cluster names. What one Envoy of
// a group refuses is withdrawn from the whole group, and the configuration before
// it stays, with the gateways as they are now.
//
// A [Registry] knows which gateways are ready; a [Bootstrap] is all that an Envoy
// is started with.
package xds
