package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
)

// Shipping is an audit log with its shippers. The zero Shipping does not have a log.
type Shipping struct {
	// Log is nil if no audit log is configured.
	Log *Log

	logger   *slog.Logger
	shippers []*Shipper
	records  *auditRecords // receiver of the OTLP shipper; may be nil
}

// OpenShipping opens the audit log, if one is configured, and its shippers.
func OpenShipping(
	cfg *settings.Audit, now func() time.Time, logger *slog.Logger, providers *telemetry.Providers, meter metric.Meter,
) (_ *Shipping, err error) {
	s := &Shipping{logger: logger}
	if cfg.File == nil {
		return s, nil
	}
	if s.Log, err = Open(cfg, now, logger); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	receivers := make(map[string]Receiver)
	if cfg.OTLP.Endpoint != "" {
		records, err := newAuditRecords(&cfg.OTLP, providers)
		if err != nil {
			return nil, err
		}
		receivers["otlp"], s.records = records, records
	}
	if !cfg.Webhook.URL.IsZero() {
		sender, err := webhook.New(&cfg.Webhook, now)
		if err != nil {
			return nil, err
		}
		receivers["webhook"] = auditEvents{sender}
	}
	for name, r := range receivers {
		one, err := s.Log.Ship(name, r, logger)
		if err != nil {
			return nil, err
		}
		s.shippers = append(s.shippers, one)
	}
	s.measure(meter)
	return s, nil
}

// Endpoints returns the endpoints for the audit log.
func (s *Shipping) Endpoints() []adminapi.Endpoint { return s.Log.Endpoints() }

// Close closes the log.
func (s *Shipping) Close() {
	if s.Log == nil {
		return
	}
	if err := s.Log.Close(); err != nil {
		s.logger.Error("cannot close the audit log", "error", err)
	}
}

// late is the time after which a waiting line counts as undelivered.
const late = time.Minute

// Undelivered describes the receivers that have not accepted lines for a minute, or for which lines were lost, and a file that cannot be
// rotated.
func (s *Shipping) Undelivered() (out []string) {
	if s.Log != nil {
		if err := s.Log.file.RotateError(); err != nil {
			out = append(out, fmt.Sprintf("audit log: file exceeds max_bytes, because it cannot be rotated: %v", err))
		}
	}
	for _, one := range s.shippers {
		b := one.Backlog()
		var parts []string
		if b.Age > late {
			parts = append(parts, fmt.Sprintf("%d lines not delivered, the oldest since %s", b.Lines, b.Since.UTC().Format(time.DateTime)))
		}
		if b.Lost > 0 {
			parts = append(parts, fmt.Sprintf("%d lines lost since startup", b.Lost))
		}
		if len(parts) > 0 {
			out = append(out, "audit log ("+one.Name()+"): "+strings.Join(parts, "; "))
		}
	}
	return out
}

// measure registers metrics for the backlog of each receiver.
func (s *Shipping) measure(m metric.Meter) {
	lines := telemetry.Must(m.Int64ObservableGauge("tollgate.audit.backlog",
		metric.WithDescription("Audit log lines that a receiver has not accepted.")))
	age := telemetry.Must(m.Float64ObservableGauge("tollgate.audit.backlog.age", metric.WithUnit("s"),
		metric.WithDescription("Time since the oldest undelivered audit log line was written.")))
	lost := telemetry.Must(m.Int64ObservableCounter("tollgate.audit.lost",
		metric.WithDescription("Audit log lines whose file was removed before a receiver accepted them.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, one := range s.shippers {
			b, to := one.Backlog(), metric.WithAttributes(attribute.String("receiver", one.Name()))
			o.ObserveInt64(lines, b.Lines, to)
			o.ObserveInt64(lost, b.Lost, to)
			o.ObserveFloat64(age, b.Age.Seconds(), to)
		}
		return nil
	}, lines, age, lost))
}

// Tasks returns the tasks that ship the log, and close the receiver at the end. They end after the listeners, so that the last
// changes are shipped.
func (s *Shipping) Tasks() []tasks.Task {
	var list []tasks.Task
	for _, one := range s.shippers {
		list = append(list, tasks.Task{Name: "audit shipping", Until: tasks.Ended, Run: tasks.NoError(one.Run)})
	}
	if s.records != nil {
		list = append(list, tasks.Task{Name: "audit receiver", Until: tasks.Ended, Run: s.closeReceiver})
	}
	return list
}

// closeReceiver closes the receiver of log records when ctx ends.
func (s *Shipping) closeReceiver(ctx context.Context) error {
	<-ctx.Done()
	if err := s.records.exporter.Shutdown(context.WithoutCancel(ctx)); err != nil {
		s.logger.WarnContext(ctx, "cannot close the audit log receiver", "error", err.Error())
	}
	return nil
}

// auditEvents delivers lines to a webhook, one by one. A line delivered twice has the same ID both times.
type auditEvents struct{ sender *webhook.Sender }

// Deliver implements Receiver.
func (a auditEvents) Deliver(ctx context.Context, lines []Line) (taken int, err error) {
	for i, l := range lines {
		data, kind := json.RawMessage(l.Text), "audit."+string(l.Phase)
		if l.Phase == "" { // a line that a crash left incomplete
			kind = "audit.incomplete"
			if data, err = json.Marshal(string(l.Text)); err != nil {
				return i, err
			}
		}
		id := strings.Join([]string{"audit", strconv.FormatInt(l.Seq, 10), l.Digest()}, ":")
		if err := a.sender.Send(ctx, id, kind, l.Time, data); err != nil {
			return i, err
		}
	}
	return len(lines), nil
}

// auditRecords delivers lines by OTLP.
type auditRecords struct {
	exporter sdklog.Exporter
	logger   log.Logger
	made     *recordList
}

func newAuditRecords(to *settings.Receiver, p *telemetry.Providers) (*auditRecords, error) {
	exporter, err := telemetry.Logs(context.Background(), to) //nolint:forbidigo // it does not dial
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	made := new(recordList)
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(p.Resource()), sdklog.WithProcessor(made), sdklog.WithAttributeCountLimit(-1))
	return &auditRecords{exporter, provider.Logger("github.com/tollgate-dev/tollgate/gateway/audit"), made}, nil
}

// maxAuditRecords is the number of lines in one export.
const maxAuditRecords = 200

// Deliver implements Receiver.
func (a *auditRecords) Deliver(ctx context.Context, lines []Line) (taken int, err error) {
	for taken < len(lines) {
		next := lines[taken:min(len(lines), taken+maxAuditRecords)]
		a.made.records = a.made.records[:0]
		for _, l := range next {
			a.logger.Emit(ctx, auditRecord(&l))
		}
		if err := a.exporter.Export(ctx, a.made.records); err != nil {
			return taken, err
		}
		taken += len(next)
	}
	return taken, nil
}

// auditRecord converts a line into a log record whose body is the unchanged line, so that the chain can be verified.
func auditRecord(l *Line) log.Record {
	var r log.Record
	r.SetEventName("tollgate.audit")
	r.SetTimestamp(l.Time)
	r.SetSeverity(log.SeverityInfo)
	r.SetBody(attribute.StringValue(string(l.Text)))
	r.AddAttributes(attribute.Int64("tollgate.audit.seq", l.Seq))
	for name, value := range map[string]string{
		"tollgate.audit.phase": string(l.Phase), "tollgate.audit.who": l.Who, "tollgate.org": l.Org,
		"tollgate.team": l.Team, "tollgate.key": l.Key,
		"tollgate.operation": l.Operation, "tollgate.decision_id": l.Decision, "tollgate.resource": l.Resource, "client.address": l.Peer,
	} {
		if value != "" {
			r.AddAttributes(attribute.String(name, value))
		}
	}
	return r
}

// recordList collects the records emitted by a logger.
type recordList struct{ records []sdklog.Record }

// Enabled implements sdklog.Processor.
func (*recordList) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// OnEmit implements sdklog.Processor.
func (l *recordList) OnEmit(_ context.Context, r *sdklog.Record) error {
	l.records = append(l.records, r.Clone())
	return nil
}

// Shutdown implements sdklog.Processor.
func (*recordList) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdklog.Processor.
func (*recordList) ForceFlush(context.Context) error { return nil }
