package reverseproxy

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Handler is the HTTP door.
type Handler struct {
	// Pipeline returns the configuration in force; it is called once for each
	// request and must not return nil.
	Pipeline func() *filter.Pipeline
	Recorder *telemetry.Recorder
	// Balancers are believed about a caller's address and about trace contexts.
	Balancers settings.Balancers
	// BodyTimeout bounds the time a caller may take to send its body,
	// WriteTimeout the time it may take to receive one part of an answer; zero
	// means no bound.
	BodyTimeout, WriteTimeout time.Duration

	buffers sync.Pool
}

// ServeHTTP runs one exchange.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := h.Pipeline()
	ex := p.NewExchange(h.inbound(r))
	event := ex.Event
	ctx := r.Context()
	if h.Balancers.TrustsTrace(r.RemoteAddr) {
		ctx = telemetry.WithRemoteParent(ctx, r.Header)
	}
	ctx, _ = h.Recorder.Begin(ctx, r.Header, ex.In.Peer)

	if ex.In.LimitError != nil {
		w.Header().Set("Connection", "close")
	}
	h.receive(w, r, ex)
	done := p.Run(ctx, ex)
	defer done()
	err := h.write(w, r, ex)
	switch {
	case errors.Is(err, filter.ErrStreamEnded):
		event.Outcome, event.Cause = telemetry.OutcomeTerminated, err
	case errors.Is(err, errGone), r.Context().Err() != nil && !ex.In.Truncated: // a body that broke off ends the context too
		event.Outcome = telemetry.OutcomeCanceled
	case err != nil && event.Outcome == telemetry.OutcomeOK:
		event.Outcome, event.Cause = telemetry.OutcomeUpstream, err
	}
	h.Recorder.Record(ctx, event)
	if err != nil {
		// The answer's head is out, so all that is left is not to end it
		// cleanly: the caller must not take half an answer for a whole one.
		panic(http.ErrAbortHandler)
	}
}

// Simulate runs an exchange for a page of this listener, whose browser has sent a request: it comes from there, and has another method, target,
// header and body. since is when the caller has presented its token, zero for now. Only answers of the gateway itself can be asked for.
func (h *Handler) Simulate(r *http.Request, body []byte, since time.Time) *filter.Response {
	p := h.Pipeline()
	in := h.inbound(r)
	in.Body, in.Length, in.Authenticated = body, int64(len(body)), since
	ex := p.NewExchange(in)
	ctx, _ := h.Recorder.Begin(r.Context(), r.Header, ex.In.Peer)
	done := p.Run(ctx, ex)
	defer done()
	h.Recorder.Record(ctx, ex.Event)
	return ex.Response
}

// inbound reads a request, but for its body.
func (h *Handler) inbound(r *http.Request) filter.Inbound {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	in := filter.Inbound{
		Door: filter.DoorHTTP, Method: r.Method, Host: r.Host, Path: path, Query: query,
		Major: r.ProtoMajor, Minor: r.ProtoMinor,
		Header: r.Header, Length: r.ContentLength, Received: h.Recorder.Now(),
	}
	in.Peer, in.Certificates, in.LimitError = h.Balancers.Client(r.RemoteAddr, r.Header), listen.Certificates(r), listen.RefuseOverBound(r)
	return in
}

// receive leaves the body to be read once the head has passed.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, ex *filter.Exchange) {
	if r.ContentLength == 0 {
		return
	}
	d := &deadline{w: w, patience: h.BodyTimeout}
	d.set()
	ex.SetBodySource(&source{body: r.Body, deadline: d})
}

// deadline is the time by which a body must have come. It is lifted only when it
// has: of a body that was not read to its end, package http reads on behind the
// answer, and would wait for the rest as long as its sender likes.
type deadline struct {
	w        http.ResponseWriter
	patience time.Duration
}

// Not every ResponseWriter has deadlines; those that face a network do.
func (d *deadline) set() {
	if d.patience > 0 {
		_ = http.NewResponseController(d.w).SetReadDeadline(time.Now().Add(d.patience))
	}
}

func (d *deadline) lift() {
	if d.patience > 0 {
		_ = http.NewResponseController(d.w).SetReadDeadline(time.Time{})
	}
}

// source is a body. Each MiB of it may take the time that a small one may take as a
// whole.
type source struct {
	body     io.Reader
	deadline *deadline
	read     int
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	const part = 1 << 20
	n, err := s.body.Read(p)
	if s.read += n; s.read >= part {
		s.read -= part
		s.deadline.set()
	}
	if errors.Is(err, io.EOF) {
		s.deadline.lift()
	}
	return n, err
}

// bufferSize is what one streaming copy moves at a time.
const bufferSize = 16 << 10

// write sends the answer. An error means that a streamed body broke off after
// its head was sent.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, ex *filter.Exchange) error {
	a := ex.Response
	if a.Tunnel != nil {
		return h.tunnel(w, ex)
	}
	header := w.Header()
	for name, values := range a.Header {
		header[spelling(name)] = values
	}
	h.extendWriteDeadline(w)
	if a.Stream == nil {
		if len(a.Body) == 0 || a.Status == http.StatusNoContent {
			w.WriteHeader(a.Status)
			return nil
		}
		header["Content-Length"] = []string{strconv.Itoa(len(a.Body))} // or a long one would be sent in chunks
		whole := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(a.Status)
			_, _ = w.Write(a.Body) // the caller left; the event says so
		}))
		if compressible(ex) {
			whole = wire.Compress(whole)
		}
		whole.ServeHTTP(w, r)
		return nil
	}
	w.WriteHeader(a.Status)
	defer func() { _ = a.Stream.Close() }()
	if ex.In.Method == http.MethodHead {
		return nil
	}
	buf := h.buffer()
	defer h.buffers.Put(buf)
	// An answer without a length is passed on part by part: it may be events.
	n, err := h.copyStream(w, a.Stream, *buf, a.Header.Get("Content-Length") == "")
	ex.Event.BytesOut = n
	return err
}

// compressible reports whether an answer may have a content coding: the answer of a worker or model server may contain a secret
// together with text of the caller.
func compressible(ex *filter.Exchange) bool {
	read := ex.In.Method == http.MethodGet || ex.In.Method == http.MethodHead
	return read && len(ex.Response.Body) >= wire.MinCompressed && !ex.Opaque() && !ex.Dialect.IsRun()
}

// extendWriteDeadline gives the caller its time for the next part of the answer.
func (h *Handler) extendWriteDeadline(w http.ResponseWriter) {
	if h.WriteTimeout > 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.WriteTimeout))
	}
}

// spelling writes the field names of the RateLimit draft as the draft does; the
// canonical form of package http differs from it.
func spelling(name string) string {
	switch name {
	case "Ratelimit":
		return "RateLimit"
	case "Ratelimit-Policy":
		return "RateLimit-Policy"
	}
	return name
}

func (h *Handler) buffer() *[]byte {
	if b, ok := h.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, bufferSize)
	return &b
}

// errGone says that the caller took no more of the answer: it left, or read too
// slowly.
var errGone = errors.New("the caller stopped reading")

// copyStream copies src to w, flushing after each read when live. It returns read
// errors, and errGone.
func (h *Handler) copyStream(w http.ResponseWriter, src io.Reader, buf []byte, live bool) (n int64, err error) {
	rc := http.NewResponseController(w)
	if live {
		_ = rc.Flush() // a caller that is gone is found out when a part is written
	}
	for {
		m, rerr := src.Read(buf)
		if m > 0 {
			h.extendWriteDeadline(w)
			_, gone := w.Write(buf[:m])
			if gone == nil && live {
				gone = rc.Flush()
			}
			if gone != nil {
				return n, errGone
			}
			n += int64(m)
		}
		if errors.Is(rerr, io.EOF) {
			return n, nil
		}
		if rerr != nil {
			return n, rerr
		}
	}
}
