package alerts

import (
	"context"
	"encoding/json"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// Number and retention of the stored alerts of an organisation.
const (
	maxSent       = 1000
	sentRetention = 90 * 24 * time.Hour
)

// recordTimeout limits the time to store a sent alert.
const recordTimeout = 2 * time.Second

// NewSentLog returns the journal of sent alerts. It does not connect.
func NewSentLog(client redis.Cmdable, prefix settings.Prefix) *store.CappedLog {
	return &store.CappedLog{Client: client, Prefix: prefix.Decisions() + "told:", MaxLines: maxSent, Retention: sentRetention}
}

// record stores an alert and the result of its delivery. If several attempts to deliver an alert fail, it stores only one failure.
func (t *Alerts) record(ctx context.Context, org string, a Alert, data content, failure error) {
	if failure != nil {
		a.Failure = failure.Error()
	}
	if !t.isNew(a.ID, failure != nil) {
		return
	}
	a.Text = data.sentence(a.Kind)
	a.Data = telemetry.Must(json.Marshal(data))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := t.Sent.Add(ctx, org, telemetry.Must(json.Marshal(a))); err != nil {
		t.Logger.WarnContext(ctx, "cannot store a sent alert", "org", org, "event", a.Kind, "error", err.Error())
	}
}

// isNew reports whether this result of an alert is not stored yet, as far as this gateway knows.
func (t *Alerts) isNew(id string, failed bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !failed {
		delete(t.failed, id)
		return true
	}
	if t.failed[id] {
		return false
	}
	if t.failed == nil || len(t.failed) >= maxSent {
		t.failed = make(map[string]bool)
	}
	t.failed[id] = true
	return true
}

// List returns the stored alerts of an organisation, newest first. An alert whose delivery first failed and later succeeded is listed once.
func (t *Alerts) List(ctx context.Context, org string) ([]Alert, error) {
	list, err := t.Sent.List(ctx, org)
	seen, out := make(map[string]bool), []Alert{}
	for _, text := range list {
		var a Alert
		if json.Unmarshal([]byte(text), &a) == nil && !seen[a.ID] { // other lines were written by another version
			seen[a.ID], out = true, append(out, a)
		}
	}
	return out, err
}
