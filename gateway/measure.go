package gateway

import (
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// meter makes the instruments of this package.
func (g *Gateway) meter() metric.Meter {
	return g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/gateway")
}

// must returns an instrument or the registration of its callback. It panics on an
// error: what they are made of is constant.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("gateway: metrics: %v", err))
	}
	return v
}
