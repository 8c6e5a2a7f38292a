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

// Size refuses bodies whose declared length is over the limit, before anything else.
type Size struct{}

// Name implements Filter.
func (Size) Name() string { return stageSize }

// Request refuses with 413, and with 400 a body that broke off.
func (Size) Request(_ context.Context, ex *Exchange) error { return fits(ex) }

// Response counts a body that was refused before it was read, and whose length was not declared: its size
// comes before all else.
func (Size) Response(_ context.Context, ex *Exchange) error {
	source := ex.In.Source
	if source == nil || ex.In.Length >= 0 || ex.Dialect.Runs() {
		return nil
	}
	switch _, err := io.CopyN(io.Discard, source, MaxBody+1); {
	case err == nil:
		return tooLarge(MaxBody)
	case !errors.Is(err, io.EOF):
		ex.In.Broken = true
		return brokenOff()
	}
	return nil
}

// Receive reads the body behind the head, if the door has not, and refuses bodies over the limit, because a
// declared length may lie. The body of a caller refused in the head takes no memory.
type Receive struct {
	// Memory bounds the bodies of the run interface, which are two hundred times as
	// large as others, Keyless those of callers without a key.
	Memory, Keyless *Memory
}

// Name implements Filter.
func (Receive) Name() string { return stageSize }

// Request refuses with 413, with 400 a body that broke off, and with 503 one
// that there is no memory for.
func (f Receive) Request(_ context.Context, ex *Exchange) error {
	if source := ex.In.Source; source != nil && !ex.Opaque() {
		ex.In.Source = nil
		if err := f.receive(ex, source, ex.BodyLimit()); err != nil || ex.In.Oversize {
			discard(source)
			if err != nil {
				return err
			}
		}
	}
	return fits(ex)
}

// Response gives the memory of the body back, if sending it has not.
func (Receive) Response(_ context.Context, ex *Exchange) error {
	if ex.Admission.memory != nil {
		ex.letGo()
		ex.Out.Body = nil
		ex.Admission.memory.free()
	}
	return nil
}

// fits refuses a body over the limit, and one that broke off.
func fits(ex *Exchange) error {
	limit, in := ex.BodyLimit(), &ex.In
	if in.Oversize || in.Length > limit || int64(len(in.Body)) > limit {
		return tooLarge(limit)
	}
	if in.Broken {
		return brokenOff()
	}
	return nil
}

func tooLarge(limit int64) error {
	return problem.TooLarge.Newf("the request body exceeds %d bytes", limit).With("Connection", "close")
}

func brokenOff() error {
	return problem.BadRequest.New("the request body broke off").With("Connection", "close")
}

// bound is the memory that the body of an exchange is taken from, nil for one that
// only the quotas and connections of its caller bound.
func (f Receive) bound(ex *Exchange) *held {
	switch {
	case ex.Dialect.Runs():
		return &held{memory: f.Memory}
	case ex.Caller == nil:
		return &held{memory: f.Keyless}
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
	case !ex.Dialect.Runs():
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
	// earnest is how much of a body must have come before its declared length is
	// believed, and all of it is given at once.
	earnest = 64 << 10
)

// maxDiscard bounds the part of a body that is read to be dropped.
const maxDiscard = 32 << 20

// discard reads on: a client that is cut off while it sends does not read why.
func discard(source io.Reader) { _, _ = io.CopyN(io.Discard, source, maxDiscard) }

// receive reads the body. Its memory is reserved as it grows.
func (f Receive) receive(ex *Exchange, source io.Reader, limit int64) error {
	in := &ex.In
	if in.Oversize = in.Length > limit; in.Oversize {
		return nil
	}
	ex.Admission.memory = f.bound(ex)
	ex.Admission.Slot.Rest()
	defer ex.Admission.Slot.Work()
	defer func() { ex.Event.BytesIn = int64(len(in.Body)) }()
	most := limit + 1 // one more byte shows that there are too many
	if in.Length >= 0 {
		most = in.Length + 1 // or the end
	}
	var b []byte
	for {
		if len(b) == cap(b) {
			grown := min(max(firstRead, 2*int64(cap(b))), most)
			if len(b) >= earnest && in.Length >= 0 {
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
			in.Broken = true
			return nil
		}
	}
}

// letGo forgets the body, which nothing looks at once Out is made.
func (ex *Exchange) letGo() {
	ex.In.Body, ex.Body.Doc = nil, nil
	if ex.Judged.Input != nil {
		in := *ex.Judged.Input
		in.Request.Body = nil
		ex.Judged.Input = &in
	}
}
