package platform

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"time"
)

// bombSize is what the oversized answers expand to.
const bombSize = 64 << 20

// misbehave answers with what fault f makes of rep, which is the operation's own
// answer where the operation was carried out.
func (x *exchange) misbehave(f Fault, rep reply) {
	x.s.calls.edit(x.call, func(c *Call) { c.Fault = f.Kind })
	if p := f.refusal(x.route.operation); p != nil {
		x.send(x.refusal(p))
		return
	}
	switch f.Kind {
	case FaultSlow:
		if x.sleep(orDefault(f.Delay, time.Second)) {
			x.send(rep)
		}
	case FaultHalf:
		x.send(rep)
	case FaultTrickle:
		x.trickle(rep, orDefault(f.Delay, time.Millisecond))
	case FaultDrop:
		panic(http.ErrAbortHandler)
	case FaultCut:
		x.cut(rep)
	case FaultHang:
		ctx, stop := x.untilClosed()
		defer stop()
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	case FaultMalformed:
		body := f.Body
		if body == "" {
			body = `{"id": "half an answer", "status": `
		}
		x.send(reply{status: http.StatusOK, body: []byte(body)})
	case FaultHuge:
		x.huge()
	case FaultBomb:
		x.bomb()
	default: // the refusals, which are answered already
	}
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// cut promises the whole body, sends half of it and closes the connection.
func (x *exchange) cut(rep reply) {
	body := rep.body
	if len(body) < 2 {
		body = []byte("{}")
	}
	x.head(reply{status: rep.status, body: body})
	_, _ = x.w.Write(body[:len(body)/2])
	_ = http.NewResponseController(x.w).Flush()
	panic(http.ErrAbortHandler)
}

// trickle sends the body byte by byte, gap apart.
func (x *exchange) trickle(rep reply, gap time.Duration) {
	x.head(rep)
	out := http.NewResponseController(x.w)
	for i := range rep.body {
		if !x.sleep(gap) {
			return
		}
		if _, err := x.w.Write(rep.body[i : i+1]); err != nil {
			return
		}
		_ = out.Flush()
	}
}

// huge sends valid JSON far larger than any answer ought to be.
func (x *exchange) huge() {
	x.w.Header().Set("Content-Type", "application/json")
	x.status(http.StatusOK)
	_, _ = x.w.Write([]byte(`{"pad":"`))
	block := bytes.Repeat([]byte("x"), 1<<16)
	for range bombSize / len(block) {
		if _, err := x.w.Write(block); err != nil {
			return
		}
	}
	_, _ = x.w.Write([]byte(`"}`))
}

// bomb sends a small body that a client which unpacks it without a limit turns
// into bombSize bytes.
func (x *exchange) bomb() {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // fails for unknown levels only
	block := make([]byte, 1<<16)
	for range bombSize / len(block) {
		_, _ = z.Write(block) // a bytes.Buffer takes everything
	}
	_ = z.Close()
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Encoding", "gzip")
	h.Set("Content-Length", strconv.Itoa(packed.Len()))
	x.status(http.StatusOK)
	_, _ = x.w.Write(packed.Bytes())
}
