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

// missed says how many decisions a reader was too slow for.
type missed struct {
	Missed int64 `json:"missed"`
}

const (
	// maxStreams bounds the streams of decisions that are open at once.
	maxStreams = 32
	// lookEvery is how often it is looked whether the asker may still ask, and sayEvery how many looks pass between two signs of life.
	lookEvery, sayEvery = time.Second, 10
	// maxStall is how long one event may take to be written.
	maxStall = 10 * time.Second
)

// stream sends decisions as server-sent events (WHATWG HTML, section "Server-sent events"): "decision" with a summary, "missed" with
// how many were left out, and "end" with the reason when the gateway ends the stream: the asker has lost the permission, or the gateway drains.
func (d *Decisions) stream(ctx context.Context, s adminapi.Principal, p followed) (adminapi.Writer, error) {
	return func(w io.Writer) error {
		if !d.streams.TryAcquire(1) {
			return adminapi.RefusedError{Status: http.StatusServiceUnavailable, Reason: "too many streams are open"}
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
				return out.end("the gateway drains")
			case e, ok := <-events:
				if !ok {
					return nil
				}
				err = out.tell(e)
			case <-look.C:
				if looks++; !s.MayContinue(ctx) {
					return out.end("the token is not accepted any more, or has lost its role")
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
	control *http.ResponseController // nil where w is no answer
}

func newEvents(w io.Writer) *events {
	e := &events{w: w}
	if answer, ok := w.(http.ResponseWriter); ok {
		answer.Header().Set("Cache-Control", "no-store")
		answer.Header().Set("X-Accel-Buffering", "no") // proxies pass each event on at once
		e.control = http.NewResponseController(answer)
	}
	return e
}

func (e *events) comment(text string) error { return e.write(": " + text + "\n\n") }

func (e *events) end(reason string) error { return e.event("end", map[string]string{"reason": reason}) }

func (e *events) tell(v any) error {
	if m, ok := v.(missed); ok {
		return e.event("missed", m)
	}
	return e.event("decision", v)
}

// event writes one; JSON has no line feed.
func (e *events) event(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return e.write("event: " + name + "\ndata: " + string(text) + "\n\n")
}

// close takes the bound off the connection, which may be used again.
func (e *events) close() {
	if e.control != nil {
		_ = e.control.SetWriteDeadline(time.Time{})
	}
}

// write writes text at once, or fails after maxStall.
func (e *events) write(text string) error {
	if e.control != nil {
		_ = e.control.SetWriteDeadline(time.Now().Add(maxStall))
	}
	if _, err := io.WriteString(e.w, text); err != nil || e.control == nil {
		return err
	}
	return e.control.Flush()
}
