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

// Handler is the http.Handler for callers.
type Handler struct {
	// Pipeline returns the pipeline of the configuration in force. It is called once per request, and must not return nil.
	Pipeline func() *filter.Pipeline
	Recorder *telemetry.Recorder
	// Balancers lists the load balancers that are trusted to report caller addresses and trace contexts.
	Balancers settings.Balancers
	// BodyTimeout is the time limit for receiving a request body. WriteTimeout is the time limit for sending one part of a response. 0 means
	// no limit.
	BodyTimeout, WriteTimeout time.Duration

	buffers sync.Pool
}

// ServeHTTP implements http.Handler.
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
	case errors.Is(err, errGone), r.Context().Err() != nil && !ex.In.Truncated: // an aborted body ends the context, too
		event.Outcome = telemetry.OutcomeCanceled
	case err != nil && event.Outcome == telemetry.OutcomeOK:
		event.Outcome, event.Cause = telemetry.OutcomeUpstream, err
	}
	h.Recorder.Record(ctx, event)
	if err != nil {
		// The response head was sent, so the connection must be aborted: a clean end would make a truncated response look complete.
		panic(http.ErrAbortHandler)
	}
}

// Simulate processes a request that a page of the gateway makes on behalf of a caller, and returns the response. r contains the method,
// target and header of the request, and the connection of the browser. authenticated is the time at which the caller presented its
// token; the zero time means now. Simulate supports only requests to which the gateway itself responds, because it does not call the
// platform.
func (h *Handler) Simulate(r *http.Request, body []byte, authenticated time.Time) *filter.Response {
	p := h.Pipeline()
	in := h.inbound(r)
	in.Body, in.Length, in.Authenticated = body, int64(len(body)), authenticated
	ex := p.NewExchange(in)
	ctx, _ := h.Recorder.Begin(r.Context(), r.Header, ex.In.Peer)
	done := p.Run(ctx, ex)
	defer done()
	h.Recorder.Record(ctx, ex.Event)
	return ex.Response
}

// inbound converts a request without its body.
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

// receive sets the source of the request body. The body is read only after the chain has accepted the head.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, ex *filter.Exchange) {
	if r.ContentLength == 0 {
		return
	}
	b := &source{body: r.Body, w: w, patience: h.BodyTimeout}
	b.setDeadline(time.Now().Add(b.patience))
	ex.SetBodySource(b)
}

// source reads a request body with a deadline. For a large body, the time limit applies to each MiB separately. The deadline is removed only
// after the complete body was read. If the body was not read to its end, the deadline stays set, because the net/http server reads the rest
// after the response and would otherwise wait indefinitely.
type source struct {
	body     io.Reader
	w        http.ResponseWriter
	patience time.Duration // 0 for no limit
	read     int
}

// setDeadline sets the read deadline. Some ResponseWriters do not support deadlines; ResponseWriters of network connections do.
func (s *source) setDeadline(t time.Time) {
	if s.patience > 0 {
		_ = http.NewResponseController(s.w).SetReadDeadline(t)
	}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	const part = 1 << 20
	n, err := s.body.Read(p)
	if s.read += n; s.read >= part {
		s.read -= part
		s.setDeadline(time.Now().Add(s.patience))
	}
	if errors.Is(err, io.EOF) {
		s.setDeadline(time.Time{})
	}
	return n, err
}

// bufferSize is the size of the buffer for streaming.
const bufferSize = 16 << 10

// write sends the response. It returns an error if the response body could not be streamed completely after the head was sent.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, ex *filter.Exchange) error {
	a := ex.Response
	if a.Tunnel != nil {
		return h.tunnel(w, ex)
	}
	header := w.Header()
	for name, values := range a.Header {
		header[spelling(name)] = values
	}
	if _, typed := header["Content-Type"]; !typed {
		header["Content-Type"] = nil // otherwise net/http would derive a type from the body
	}
	h.extendWriteDeadline(w)
	if a.Stream == nil {
		if len(a.Body) == 0 || a.Status == http.StatusNoContent {
			w.WriteHeader(a.Status)
			return nil
		}
		header["Content-Length"] = []string{strconv.Itoa(len(a.Body))} // otherwise a long body would be sent in chunks
		whole := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(a.Status)
			_, _ = w.Write(a.Body) // the event records that the caller disconnected
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
	// Flush each part of a response without a length, because it may be an event stream.
	n, err := h.copyStream(w, a.Stream, *buf, a.Header.Get("Content-Length") == "")
	ex.Event.BytesOut = n
	return err
}

// compressible reports whether a response may be compressed. Responses of workers and model servers are not compressed: if they contain
// secrets and text chosen by the caller, the compressed length could reveal the secrets.
func compressible(ex *filter.Exchange) bool {
	read := ex.In.Method == http.MethodGet || ex.In.Method == http.MethodHead
	return read && len(ex.Response.Body) >= wire.MinCompressed && !ex.Opaque() && !ex.Dialect.IsRun()
}

// extendWriteDeadline sets the deadline for sending the next part of the response.
func (h *Handler) extendWriteDeadline(w http.ResponseWriter) {
	if h.WriteTimeout > 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.WriteTimeout))
	}
}

// spelling returns the name of a header as it is sent. The RateLimit draft spells its header names differently from the canonical form of
// net/http.
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

// errGone is returned if the caller has disconnected or reads too slowly.
var errGone = errors.New("caller stopped reading the response")

// copyStream copies src to w. If live is true, it flushes after each read. It returns read errors unchanged, and errGone if writing fails.
func (h *Handler) copyStream(w http.ResponseWriter, src io.Reader, buf []byte, live bool) (n int64, err error) {
	rc := http.NewResponseController(w)
	if live {
		_ = rc.Flush() // the next write reports a disconnected caller
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
