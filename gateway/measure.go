package gateway

import (
	"go.opentelemetry.io/otel/metric"
)

// meter makes the instruments of this package.
func (g *Gateway) meter() metric.Meter {
	return g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/gateway")
}
