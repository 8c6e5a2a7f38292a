package gateway

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// source is something the gateway works from and keeps looking at: the
// configuration, an organisation's bundle, its price list, the keys of issuers, the keys
// made at run time.
type source struct {
	kind, org string
	good      time.Time // when it was last good; zero for never
	failed    bool      // the last look
}

// sources lists them all.
func (g *Gateway) sources() []source {
	report := g.current.status.Report()
	out := []source{{kind: "configuration", good: report.Loaded, failed: report.Why() != ""}}
	now := g.current.Load()
	if now == nil {
		return out
	}
	bundled := make(map[string]bool)
	for _, o := range now.Config.Orgs {
		bundled[o.ID] = o.Policies.Bundle != nil
	}
	for _, s := range now.engine.Status() {
		if bundled[s.Org] {
			out = append(out, source{kind: "bundle", org: s.Org, good: s.Fetched, failed: s.Err != nil})
		}
	}
	for _, s := range g.catalog.Status() {
		out = append(out, source{kind: "prices", org: s.Org, good: s.Fetched, failed: s.Err != nil})
	}
	if s, ok := issuersSource(g.issuerKeys.Status()); ok {
		out = append(out, s)
	}
	if keys, err := g.keys.State(); !keys.IsZero() || err != nil {
		out = append(out, source{kind: "keys", good: keys, failed: err != nil})
	}
	return out
}

// measureSources makes metrics of how the sources are doing. There are as many
// series as the configuration has organisations.
func measureSources(m metric.Meter, now func() time.Time, list func() []source) {
	age := telemetry.Must(m.Float64ObservableGauge("tollgate.source.age", metric.WithUnit("s"),
		metric.WithDescription("Time since a configuration was last taken, a bundle last seen to be current, a price list or the keys made at run time last read.")))
	failed := telemetry.Must(m.Int64ObservableGauge("tollgate.source.failed",
		metric.WithDescription("1 when the last look at a configuration, a bundle, a price list or the keys made at run time failed, so that the last good one stays.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range list() {
			attrs := metric.WithAttributes(attribute.String("kind", s.kind), attribute.String("org", s.org))
			if !s.good.IsZero() {
				o.ObserveFloat64(age, now().Sub(s.good).Seconds(), attrs)
			}
			n := int64(0)
			if s.failed {
				n = 1
			}
			o.ObserveInt64(failed, n, attrs)
		}
		return nil
	}, age, failed))
}

// issuersSource says how the keys of all issuers are doing: when the one was read that
// was read the longest ago, and whether any could not be. It reports false without issuers.
func issuersSource(list []oidc.Status) (source, bool) {
	s := source{kind: "issuers"}
	for i, one := range list {
		s.failed = s.failed || one.Err != nil
		if i == 0 || one.Fetched.Before(s.good) {
			s.good = one.Fetched
		}
	}
	return s, len(list) > 0 && (s.failed || s.good != time.Time{})
}
