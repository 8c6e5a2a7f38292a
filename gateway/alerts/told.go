package alerts

import (
	"context"
	"encoding/json"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// Alerts of an organisation are kept in this number and for this time.
const (
	maxSent       = 1000
	sentRetention = 90 * 24 * time.Hour
)

// recordTimeout bounds the writing of sent alerts.
const recordTimeout = 2 * time.Second

// NewSentLog returns the journal of the alerts that were sent. It does not dial.
func NewSentLog(client redis.Cmdable, prefix settings.Prefix) *store.CappedLog {
	return &store.CappedLog{Client: client, Prefix: prefix.Decisions() + "told:", MaxLines: maxSent, Retention: sentRetention}
}

// record keeps an alert that was told, or could not be. An alert whose delivery is tried again and again is kept as failed once.
func (t *Alerts) record(ctx context.Context, org string, a Alert, data any, failure error) {
	if failure != nil {
		a.Failure = failure.Error()
	}
	if !t.isNew(a.ID, failure != nil) {
		return
	}
	a.Data = telemetry.Must(json.Marshal(data))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := t.Sent.Add(ctx, org, telemetry.Must(json.Marshal(a))); err != nil {
		t.Logger.WarnContext(ctx, "an alert was not kept for operators", "org", org, "event", a.Kind, "error", err.Error())
	}
}

// isNew reports whether the list does not have this end of an alert yet, as far as this gateway knows.
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

// List returns the alerts of an organisation that are kept, the newest first. An alert that was delivered after all is listed once. The error is
// row.ErrNoOrg for an organisation that is not configured.
func (t *Alerts) List(ctx context.Context, org string) ([]Alert, error) {
	if t.Config().Org(org) == nil {
		return nil, row.ErrNoOrg
	}
	list, err := t.Sent.List(ctx, org)
	seen, out := make(map[string]bool), []Alert{}
	for _, text := range list {
		var a Alert
		if json.Unmarshal([]byte(text), &a) == nil && !seen[a.ID] { // others are of another version
			seen[a.ID], out = true, append(out, a)
		}
	}
	return out, err
}
