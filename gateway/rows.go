package gateway

import (
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/limits"
)

// operators are the features that operators question. The zero value describes their rows, which cannot be asked then.
type operators struct {
	limits limits.Limits
}

// rows lists the rows of all features, in the order of the commands' and the API's descriptions.
func (o *operators) rows() []row.Row {
	return slices.Concat(o.limits.Rows())
}

// operators binds the features to this gateway.
func (g *Gateway) operators() *operators {
	return &operators{
		limits: limits.Limits{Current: g.view, Limiter: g.counts.Limiter},
	}
}
