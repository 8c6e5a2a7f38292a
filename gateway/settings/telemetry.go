package settings

import (
	"errors"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Telemetry says where telemetry goes.
type Telemetry struct {
	OTLP        OTLP         `yaml:"otlp" doc:"export by OTLP" reload:"restart"`
	Context     TraceContext `yaml:"context" doc:"trace contexts of callers, and for the platform" reload:"live"`
	SampleRatio float64      `yaml:"sample_ratio" doc:"share of exchanges traced, 0 to 1" reload:"live"`
}

// OTLP sets the exports and their receiver: traces, and further signals that are switched on.
type OTLP struct {
	Receiver `yaml:",inline"`

	Metrics time.Duration `yaml:"metrics" doc:"how often metrics are exported, beside /metrics; 0 exports none"`
	Logs    bool          `yaml:"logs" doc:"export the log, one record for each line on standard error: one of each exchange among them"`
}

// minMetrics is how often metrics are exported at most.
const minMetrics = time.Second

// Validate reports every fault, each with its path below the section.
func (c *Telemetry) Validate() error {
	errs := fault.Found{fault.At("otlp", c.OTLP.Validate())}
	errs.If(c.SampleRatio < 0 || c.SampleRatio > 1, "sample_ratio", "must be between 0 and 1")
	if m := c.OTLP.Metrics; m != 0 && m < minMetrics {
		errs = append(errs, fault.Errorf("otlp.metrics", "must be at least %s", minMetrics))
	}
	errs.If(c.OTLP.Endpoint == "" && (c.OTLP.Metrics != 0 || c.OTLP.Logs), "otlp.endpoint", "is required with metrics or logs")
	return errors.Join(errs...)
}

// TraceContext sets how W3C trace contexts are handled.
type TraceContext struct {
	Trusted   []netip.Prefix `yaml:"trusted" doc:"prefixes of callers whose trace context (traceparent, tracestate) becomes the parent of an exchange's span, which is then sampled as it says; the contexts of others are linked"`
	Propagate bool           `yaml:"propagate" doc:"send the trace context to the platform"`
}
