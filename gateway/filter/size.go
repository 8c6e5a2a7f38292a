package filter

import (
	"context"
	"errors"
	"io"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// maxBody is the platform's limit for REST bodies in bytes (reference platform-v2, section 1.3), which the gateway enforces too.
const maxBody = 102400

// StageSize is the name of both stages that limit the size of bodies.
const StageSize = "limit size"

// LimitSize refuses requests whose declared body length exceeds the limit, before the body is read.
type LimitSize struct{}

// Name implements Filter.
func (LimitSize) Name() string { return StageSize }

// Request returns 413 if the body is too large.
func (LimitSize) Request(_ context.Context, ex *Exchange) error { return checkSize(ex) }

// ReadBody reads the body unless the server has already read it. It checks the size of the body while reading, because the declared length may be
// wrong.
type ReadBody struct {
	// Memory limits the memory for bodies of the run interface, which may be 200 times larger than other bodies. Keyless limits the memory for
	// other bodies of anonymous callers.
	Memory, Keyless *overload.Pool
}

// Name implements Filter.
func (ReadBody) Name() string { return StageSize }

// Request returns 413 if the body is too large, 400 if the body is incomplete, and 503 if there is not enough memory for the body.
func (f ReadBody) Request(_ context.Context, ex *Exchange) error {
	if source := ex.In.Source; source != nil && !ex.Opaque() {
		ex.In.Source = nil
		if err := f.receive(ex, source, ex.BodyLimit()); err != nil || ex.In.Oversize {
			discard(source)
			if err != nil {
				return err
			}
		}
	}
	return checkSize(ex)
}

// Response releases the body and the memory reserved for the body, unless another stage has already released them.
func (ReadBody) Response(_ context.Context, ex *Exchange) error {
	if ex.Admission.memory != nil {
		ex.dropBody()
		ex.Out.Body = nil
		ex.Admission.memory.releaseAll()
	}
	return nil
}

// checkSize refuses bodies that exceed the limit or are truncated.
func checkSize(ex *Exchange) error {
	limit, in := ex.BodyLimit(), &ex.In
	if in.Oversize || in.Length > limit || int64(len(in.Body)) > limit {
		return tooLarge(limit)
	}
	if in.Truncated {
		return bodyTruncated()
	}
	return nil
}

func tooLarge(limit int64) error {
	return problem.TooLarge.Newf("the request body exceeds %d bytes", limit).With("Connection", "close")
}

func bodyTruncated() error {
	return problem.BadRequest.New("the request body is incomplete").With("Connection", "close")
}

// memoryFor returns the memory limit that applies to the body. It is nil for callers whose bodies are limited by their quotas and
// connections.
func (f ReadBody) memoryFor(ex *Exchange) *memoryUse {
	switch {
	case ex.Dialect.IsRun():
		return &memoryUse{pool: f.Memory, org: orgOf(ex)}
	case ex.Caller == nil:
		return &memoryUse{pool: f.Keyless}
	}
	return nil
}

// Opaque reports whether the gateway forwards the call without reading its content.
func (ex *Exchange) Opaque() bool {
	if ex.Operation == nil {
		return false
	}
	row, _ := operation.Lookup(ex.Operation.ID)
	return row.Opaque
}

// BodyLimit returns the maximum size of the body in bytes. For a request to the run interface whose operation is not known yet, BodyLimit
// returns the largest limit of any operation.
func (ex *Exchange) BodyLimit() int64 {
	switch {
	case !ex.Dialect.IsRun():
		return maxBody
	case ex.Operation == nil:
		return operation.MaxBody
	}
	if row, _ := operation.Lookup(ex.Operation.ID); row.MaxBody > 0 {
		return row.MaxBody
	}
	return maxBody
}

const (
	// firstRead is the initial buffer size. A large declared length alone must not allocate memory.
	firstRead = 4 << 10
	// trustLengthAfter is the number of bytes after which the declared length is trusted and the whole buffer is allocated.
	trustLengthAfter = 64 << 10
)

// maxDiscard limits how much of a refused body is read.
const maxDiscard = 32 << 20

// discard reads the rest of a body, because a client whose connection is closed while it sends cannot read the response.
func discard(source io.Reader) { _, _ = io.CopyN(io.Discard, source, maxDiscard) }

// receive reads the body. It reserves memory as the body grows.
func (f ReadBody) receive(ex *Exchange, source io.Reader, limit int64) error {
	in := &ex.In
	if in.Oversize = in.Length > limit; in.Oversize {
		return nil
	}
	ex.Admission.memory = f.memoryFor(ex)
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	defer func() { ex.Event.BytesIn = int64(len(in.Body)) }()
	most := limit + 1 // one more byte detects an excess
	if in.Length >= 0 {
		most = in.Length + 1 // or the end of the body
	}
	var b []byte
	for {
		if len(b) == cap(b) {
			grown := min(max(firstRead, 2*int64(cap(b))), most)
			if len(b) >= trustLengthAfter && in.Length >= 0 {
				grown = most
			}
			if !ex.Admission.memory.grow(grown - int64(cap(b))) {
				return problem.Overloaded.New("not enough memory for the request body; try again later").With("Retry-After",
					"1").With("Connection", "close")
			}
			b = append(make([]byte, 0, grown), b...)
		}
		n, err := source.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			in.Oversize = true
			return nil
		case errors.Is(err, io.EOF):
			in.Body = b
			return nil
		case err != nil:
			in.Truncated = true
			return nil
		}
	}
}

// dropBody releases the body, which is not needed once Out is complete.
func (ex *Exchange) dropBody() {
	ex.In.Body, ex.Body.Doc = nil, nil
	if ex.Evaluation.Input != nil {
		in := *ex.Evaluation.Input
		in.Request.Body = nil
		ex.Evaluation.Input = &in
	}
}
