package platform

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
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
	if m := manners[f.Kind]; m.status == 0 {
		m.misbehave(x, f, rep)
		return
	}
	x.send(x.refusal(f.refusal(x.route.operation)))
}

// delay sends the answer late.
func (x *exchange) delay(f Fault, rep reply) {
	if x.sleep(cmp.Or(f.Delay, time.Second)) {
		x.send(rep)
	}
}

// hang answers nothing until the client leaves.
func (x *exchange) hang(Fault, reply) {
	ctx, stop := x.untilClosed()
	defer stop()
	<-ctx.Done()
	panic(http.ErrAbortHandler)
}

// malform sends a body that is not JSON.
func (x *exchange) malform(f Fault, _ reply) {
	x.send(ok(json.RawMessage(cmp.Or(f.Body, `{"id": "half an answer", "status": `))))
}

// cut promises the whole body, sends half of it and closes the connection.
func (x *exchange) cut(_ Fault, rep reply) {
	body := rep.body
	if len(body) < 2 {
		body = []byte("{}")
	}
	x.head(reply{status: rep.status, body: body})
	_, _ = x.w.Write(body[:len(body)/2])
	_ = http.NewResponseController(x.w).Flush()
	panic(http.ErrAbortHandler)
}

// trickle sends the body byte by byte.
func (x *exchange) trickle(f Fault, rep reply) {
	x.head(rep)
	out := http.NewResponseController(x.w)
	for i := range rep.body {
		if !x.sleep(cmp.Or(f.Delay, time.Millisecond)) {
			return
		}
		if _, err := x.w.Write(rep.body[i : i+1]); err != nil {
			return
		}
		_ = out.Flush()
	}
}

// huge sends valid JSON far larger than any answer ought to be.
func (x *exchange) huge(Fault, reply) {
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
func (x *exchange) bomb(Fault, reply) {
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
