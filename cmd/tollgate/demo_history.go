package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// history makes the calls of a week in the past. They pass through the gateway's own handlers, with a clock shared by the emulator, the
// store and the gateway, so that amounts, resources and decisions are consistent.
type history struct {
	clock *platform.Clock
	store *miniredis.Miniredis
	// data and admin are the handlers of the listeners.
	data, admin http.Handler
	// running holds pod IDs by name.
	running map[string]string
}

// weekHours is the length of the history.
const weekHours = 7 * 24

// newHistory returns a history whose clock is set to its beginning.
func newHistory(now time.Time) *history {
	return &history{clock: platform.NewClock(now.Add(-weekHours*time.Hour), 1), running: make(map[string]string)}
}

// made describes a pod that a caller creates at the given hour of one or more days.
type made struct {
	hour, days      int // days is a bit set of days
	key, name, body string
	// ends is the hour at which the pod is deleted, or 0 if it stays.
	ends int
}

const (
	everyDay = 1<<7 - 1
	lastDay  = 1 << 6
)

// story returns the pods of the week. Hours count from the beginning of a day of the history.
func story() []made {
	pod := func(gpu string, count int) string {
		return fmt.Sprintf(`{"name":"NAME","image":"acme/train:3","gpu":{"id":%q,"count":%d}}`, gpu, count)
	}
	const l4, rtx, h100 = "NVIDIA L4", "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3"
	return []made{
		{hour: 1, days: everyDay, key: "tg_demo_research", name: "train", body: pod(rtx, 2), ends: 11},
		{hour: 2, days: everyDay &^ 4, key: "tg_demo_research", name: "notebook", body: pod(l4, 1), ends: 9},
		{hour: 3, days: everyDay, key: "tg_demo_ml", name: "embed", body: pod(l4, 2), ends: 14},
		{hour: 4, days: everyDay, key: "tg_demo_ml", name: "one-more", body: pod(l4, 2), ends: 5},
		{hour: 5, days: everyDay, key: "tg_demo_research", name: "dear", body: pod(h100, 1), ends: 6},
		{hour: 6, days: 1<<3 | lastDay, key: "tg_demo_research", name: "sweep", body: pod(l4, 4), ends: 20},
		{hour: 7, days: 1<<1 | 1<<4, key: "tg_demo_platform", name: "eval", body: pod(h100, 1), ends: 22},
		{hour: 8, days: lastDay, key: "tg_demo_platform", name: "gateway-test", body: pod(l4, 1)},
	}
}

// fill makes all calls of the week, and then sets the clocks to the present time.
func (h *history) fill(ctx context.Context, g *gateway.Gateway, store *miniredis.Miniredis) error {
	h.store, h.data, h.admin = store, g.Handler(), g.AdminHandler()
	defer store.SetTime(time.Time{}) // back to the system clock
	begin := h.clock.Now()
	if err := h.operate(ctx, "spend/reconcile", nil); err != nil {
		return err
	}
	for hour := range weekHours {
		h.turn(begin.Add(time.Duration(hour) * time.Hour))
		if err := h.hour(ctx, hour/24, hour%24); err != nil {
			return err
		}
	}
	h.turn(begin.Add(weekHours * time.Hour))
	return h.operate(ctx, "spend/reconcile", nil)
}

// turn sets the clocks of the emulator, the store and the gateway to a time.
func (h *history) turn(at time.Time) {
	before := h.clock.Now()
	if h.clock.AdvanceTo(at) {
		h.store.FastForward(at.Sub(before)) // expires entries with a TTL
	}
	h.store.SetTime(h.clock.Now())
}

// hour makes the calls of one hour.
func (h *history) hour(ctx context.Context, day, hour int) error {
	for _, m := range story() {
		switch {
		case m.days&(1<<day) == 0:
		case m.hour == hour:
			if err := h.create(ctx, &m); err != nil {
				return err
			}
			if m.name == "sweep" && day == 3 {
				if err := h.approve(ctx, &m); err != nil {
					return err
				}
			}
		case m.ends == hour && h.running[m.name] != "":
			if _, err := h.call(ctx, http.MethodDelete, "/v2/pods/"+h.running[m.name], m.key, ""); err != nil {
				return err
			}
			delete(h.running, m.name)
		}
	}
	var err error
	switch {
	case hour == 12: // a program that still uses v1
		_, err = h.call(ctx, http.MethodGet, "/v1/pods", "tg_demo_platform", "")
	case hour == 13 && day == 2:
		err = h.operate(ctx, "keys/create", url.Values{"spec": {`{"id":"nightly","team":"platform","owner":"mara@acme.example","roles":["viewer"]}`}})
	}
	if err != nil {
		return err
	}
	return h.operate(ctx, "spend/reconcile", nil) // also sends the alerts of budgets
}

// create creates a pod. The gateway may refuse it.
func (h *history) create(ctx context.Context, m *made) error {
	answer, err := h.call(ctx, http.MethodPost, "/v2/pods", m.key, strings.Replace(m.body, "NAME", m.name, 1))
	if err != nil {
		return err
	}
	var pod struct {
		ID string `json:"id"`
	}
	if answer.status == http.StatusCreated {
		if err := json.Unmarshal(answer.body.Bytes(), &pod); err != nil {
			return fmt.Errorf("demo history: %w", err)
		}
		h.running[m.name] = pod.ID
	}
	return nil
}

// approve grants the newest approval request and repeats the refused call.
func (h *history) approve(ctx context.Context, m *made) error {
	answer, err := h.ask(ctx, h.admin, http.MethodGet, "/admin/approvals?org=acme", "", "")
	if err != nil {
		return err
	}
	var list struct {
		Approvals []struct {
			ID string `json:"id"`
		} `json:"approvals"`
	}
	if err := json.Unmarshal(answer.body.Bytes(), &list); err != nil || len(list.Approvals) == 0 {
		return fmt.Errorf("demo history: no approval request: %s", answer.body.Bytes())
	}
	grant := url.Values{"id": {list.Approvals[0].ID}, "by": {"mara"}, "for": {"1h"}, "reason": {"the sweep for the paper"}}
	if err := h.operate(ctx, "approvals/grant", grant); err != nil {
		return err
	}
	return h.create(ctx, m)
}

// call makes a call with a key. It returns an error if the response is unexpected.
func (h *history) call(ctx context.Context, method, path, key, body string) (*reply, error) {
	answer, err := h.ask(ctx, h.data, method, path, key, body)
	if err == nil && answer.status >= http.StatusInternalServerError {
		err = fmt.Errorf("demo history: %s %s: %d %s", method, path, answer.status, answer.body.Bytes())
	}
	return answer, err
}

// operate calls a route of the operators' API for the organisation acme.
func (h *history) operate(ctx context.Context, row string, values url.Values) error {
	query := url.Values{"org": {"acme"}}
	maps.Copy(query, values)
	answer, err := h.ask(ctx, h.admin, http.MethodPost, "/admin/"+row+"?"+query.Encode(), "", "")
	if err == nil && answer.status >= http.StatusBadRequest {
		err = fmt.Errorf("demo history: %s: %d %s", row, answer.status, answer.body.Bytes())
	}
	return err
}

// ask passes a request directly to a handler, without a network connection.
func (h *history) ask(ctx context.Context, to http.Handler, method, target, key, body string) (*reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.RequestURI, r.RemoteAddr = target, "127.0.0.1:1"
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	w := &reply{header: make(http.Header), status: http.StatusOK}
	to.ServeHTTP(w, r)
	return w, nil
}

// reply records a response.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *reply) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *reply) Write(p []byte) (int, error) { return w.body.Write(p) }
