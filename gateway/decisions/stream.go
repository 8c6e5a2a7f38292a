package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// missed is the number of decisions dropped because the client read too slowly.
type missed struct {
	Missed int64 `json:"missed"`
}

const (
	// maxStreams limits the number of open decision streams.
	maxStreams = 32
	// lookEvery is the interval at which the client's permission is checked. A keep-alive comment is sent after sayEvery checks.
	lookEvery, sayEvery = time.Second, 10
	// maxStall limits the time to write one event.
	maxStall = 10 * time.Second
)

// stream sends decisions as server-sent events (WHATWG HTML, section "Server-sent events"). Event types are "decision" with a
// summary, "missed" with the number of dropped decisions, and "end" with the reason why the gateway ends the stream: the client has
// lost its permission, or the gateway is draining.
func (d *Decisions) stream(ctx context.Context, s adminapi.Principal, p followed) (adminapi.Writer, error) {
	return func(w io.Writer) error {
		if !d.streams.TryAcquire(1) {
			return adminapi.RefusedError{Status: http.StatusServiceUnavailable, Reason: "too many open decision streams"}
		}
		defer d.streams.Release(1)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		out := newEvents(w)
		defer out.close()
		events := d.watch(ctx, p.query())
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		if err := out.comment("open"); err != nil {
			return err
		}
		for looks := 1; ; {
			var err error
			select {
			case <-ctx.Done():
				return nil
			case <-d.deps.Draining:
				return out.end("gateway is draining")
			case e, ok := <-events:
				if !ok {
					return nil
				}
				err = out.send(e)
			case <-look.C:
				if looks++; !s.MayContinue(ctx) {
					return out.end("token is no longer valid or has lost its role")
				}
				if looks%sayEvery == 0 {
					err = out.comment("alive")
				}
			}
			if err != nil {
				return err
			}
		}
	}, nil
}

// events writes server-sent events.
type events struct {
	w       io.Writer
	control *http.ResponseController // nil if w is not an HTTP response
}

func newEvents(w io.Writer) *events {
	e := &events{w: w}
	if answer, ok := w.(http.ResponseWriter); ok {
		answer.Header().Set("Cache-Control", "no-store")
		answer.Header().Set("X-Accel-Buffering", "no") // disables buffering in proxies
		e.control = http.NewResponseController(answer)
	}
	return e
}

func (e *events) comment(text string) error { return e.write(": " + text + "\n\n") }

func (e *events) end(reason string) error { return e.event("end", map[string]string{"reason": reason}) }

func (e *events) send(v any) error {
	if m, ok := v.(missed); ok {
		return e.event("missed", m)
	}
	return e.event("decision", v)
}

// event writes one event. Encoded JSON contains no line feed.
func (e *events) event(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return e.write("event: " + name + "\ndata: " + string(text) + "\n\n")
}

// close removes the write deadline from the connection, which may be reused.
func (e *events) close() {
	if e.control != nil {
		_ = e.control.SetWriteDeadline(time.Time{})
	}
}

// write writes text immediately and fails after maxStall.
func (e *events) write(text string) error {
	if e.control != nil {
		_ = e.control.SetWriteDeadline(time.Now().Add(maxStall))
	}
	if _, err := io.WriteString(e.w, text); err != nil || e.control == nil {
		return err
	}
	return e.control.Flush()
}
