package filter

import (
	"context"
	"errors"
	"io"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// MaxBody is the platform's limit for a REST body, in bytes (reference
// platform-v2, section 1.3). The gateway holds its callers to the same.
const MaxBody = 102400

// stageSize is the name of the stages that bound bodies.
const stageSize = "size"

// LimitSizeSizeoundSize refuses bodies whose declared length is over the limit, before anything else.
type LimitSize struct{}

// Name implements Filter.
func (LimitSize) Name() string { return stageSize }

// Request refuses with 413, and with 400 a body that broke off.
func (LimitSize) Request(_ context.Context, ex *Exchange) error { return checkSize(ex) }

// Response counts a body that was refused before it was read, and whose length was not declared: its size
// comes before all else.
func (LimitSize) Response(_ context.Context, ex *Exchange) error {
	source := ex.In.Source
	if source == nil || ex.In.Length >= 0 || ex.Dialect.IsRun() {
		return nil
	}
	switch _, err := io.CopyN(io.Discard, source, MaxBody+1); {
	case err == nil:
		return tooLarge(MaxBody)
	case !errors.Is(err, io.EOF):
		ex.In.Truncated = true
		return bodyTruncated()
	}
	return nil
}

// ReadBodyreamResponse reads the body behind the head, if the door has not, and refuses bodies over the limit, because a
// declared length may lie. The body of a caller refused in the head takes no memory.
type ReadBody struct {
	// Memory bounds the bodies of the run interface, which are two hundred times as
	// large as others, Keyless those of callers without a key.
	Memory, Keyless *Memory
}

// Name implements Filter.
func (ReadBody) Name() string { return stageSize }

// Request refuses with 413, with 400 a body that broke off, and with 503 one
// that there is no memory for.
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

// Response gives the memory of the body back, if sending it has not.
func (ReadBody) Response(_ context.Context, ex *Exchange) error {
	if ex.Admission.memory != nil {
		ex.dropBody()
		ex.Out.Body = nil
		ex.Admission.memory.releaseAll()
	}
	return nil
}

// checkSize refuses a body over the limit, and one that broke off.
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
	return problem.BadRequest.New("the request body broke off").With("Connection", "close")
}

// memoryFor is the memory that the body of an exchange is taken from, nil for one that
// only the quotas and connections of its caller bound.
func (f ReadBody) memoryFor(ex *Exchange) *memoryUse {
	switch {
	case ex.Dialect.IsRun():
		return &memoryUse{memory: f.Memory}
	case ex.Caller == nil:
		return &memoryUse{memory: f.Keyless}
	}
	return nil
}

// Opaque reports whether the call passes unread.
func (ex *Exchange) Opaque() bool {
	if ex.Operation == nil {
		return false
	}
	row, _ := operation.Of(ex.Operation.ID)
	return row.Opaque
}

// BodyLimit is how many bytes the body may have: before the operation of a
// request to the run interface is known, as many as any of them takes.
func (ex *Exchange) BodyLimit() int64 {
	switch {
	case !ex.Dialect.IsRun():
		return MaxBody
	case ex.Operation == nil:
		return operation.MaxBody
	}
	if row, _ := operation.Of(ex.Operation.ID); row.Body > 0 {
		return row.Body
	}
	return MaxBody
}

const (
	// firstRead is the size of a body's buffer before its first byte: a declared
	// length costs its sender nothing.
	firstRead = 4 << 10
	// trustLengthAfter is how much of a body must have come before its declared length is
	// believed, and all of it is given at once.
	trustLengthAfter = 64 << 10
)

// maxDiscard bounds the part of a body that is read to be dropped.
const maxDiscard = 32 << 20

// discard reads on: a client that is cut off while it sends does not read why.
func discard(source io.Reader) { _, _ = io.CopyN(io.Discard, source, maxDiscard) }

// receive reads the body. Its memory is reserved as it grows.
func (f ReadBody) receive(ex *Exchange, source io.Reader, limit int64) error {
	in := &ex.In
	if in.Oversize = in.Length > limit; in.Oversize {
		return nil
	}
	ex.Admission.memory = f.memoryFor(ex)
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	defer func() { ex.Event.BytesIn = int64(len(in.Body)) }()
	most := limit + 1 // one more byte shows that there are too many
	if in.Length >= 0 {
		most = in.Length + 1 // or the end
	}
	var b []byte
	for {
		if len(b) == cap(b) {
			grown := min(max(firstRead, 2*int64(cap(b))), most)
			if len(b) >= trustLengthAfter && in.Length >= 0 {
				grown = most
			}
			if !ex.Admission.memory.grow(grown - int64(cap(b))) {
				return problem.Overloaded.New("too many bodies are under way").With("Retry-After", "1").With("Connection", "close")
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

// dropBody forgets the body, which nothing looks at once Out is made.
func (ex *Exchange) dropBody() {
	ex.In.Body, ex.Body.Doc = nil, nil
	if ex.Evaluation.Input != nil {
		in := *ex.Evaluation.Input
		in.Request.Body = nil
		ex.Evaluation.Input = &in
	}
}
