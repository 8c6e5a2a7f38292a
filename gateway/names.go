package gateway

import (
	"github.com/tollgate-dev/tollgate/gateway/coverage"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/xds"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// What follows is what the command line asks of features.

// NodeGroup is [envoy.NodeGroup].
func NodeGroup(c *settings.Config, id string) (xds.Group, []xds.Gateway, error) {
	return envoy.NodeGroup(c, id)
}

// CoverageOf is [coverage.Of].
func CoverageOf(api []*schema.Operation, rows []operation.Row) []coverage.Row {
	return coverage.Of(api, rows)
}
