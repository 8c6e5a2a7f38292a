package settings

import (
	"errors"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Telemetry configures traces, metrics and exported logs.
type Telemetry struct {
	OTLP        OTLP         `yaml:"otlp" doc:"export of telemetry by OTLP" reload:"restart"`
	Context     TraceContext `yaml:"context" doc:"trace contexts of requests (traceparent, tracestate)" reload:"live"`
	SampleRatio float64      `yaml:"sample_ratio" doc:"fraction of exchanges to trace, from 0 to 1" reload:"live"`
}

// OTLP configures the OTLP receiver and the exported signals: traces, and optionally metrics and logs.
type OTLP struct {
	Receiver `yaml:",inline"`

	Metrics time.Duration `yaml:"metrics" doc:"export interval of metrics, which are also served at /metrics. 0 disables the export"`
	Logs    bool          `yaml:"logs" doc:"export each line of the log, including one line for each exchange"`
}

// minMetrics is the minimum interval between two exports of metrics.
const minMetrics = time.Second

// Validate returns all faults of the section, joined. Their paths are relative to the section.
func (c *Telemetry) Validate() error {
	errs := fault.Found{fault.At("otlp", c.OTLP.Validate())}
	errs.If(c.SampleRatio < 0 || c.SampleRatio > 1, "sample_ratio", "must be between 0 and 1, got %v", c.SampleRatio)
	errs.If(c.OTLP.Metrics != 0 && c.OTLP.Metrics < minMetrics, "otlp.metrics", "must be at least %s", minMetrics)
	errs.If(c.OTLP.Endpoint == "" && (c.OTLP.Metrics != 0 || c.OTLP.Logs), "otlp.endpoint", "is required if metrics or logs is set")
	return errors.Join(errs...)
}

// TraceContext configures how W3C trace contexts are propagated.
type TraceContext struct {
	Trusted   []netip.Prefix `yaml:"trusted" doc:"networks of callers whose trace context (traceparent, tracestate) becomes the parent of the exchange's span and decides about sampling. Other trace contexts are added as links"`
	Propagate bool           `yaml:"propagate" doc:"send the trace context to the platform"`
}
