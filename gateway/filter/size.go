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

// Size refuses bodies over the limit before anything else is looked at. It runs
// in the head, where it sees what was declared, and again with the body, where
// it counts, because a declared length may lie.
//
// Bodies of the run interface are two hundred times as large as others. They are
// read here, after the head has passed: a caller nobody knows costs no memory.
type Size struct {
	// Memory bounds the bodies that are read here; required with the body.
	Memory *Memory
}

// Name implements Filter.
func (Size) Name() string { return "size" }

// Request refuses with 413, with 400 a body that broke off, and with 503 one
// that there is no memory for.
func (f Size) Request(_ context.Context, ex *Exchange) error {
	limit := ex.bodyLimit()
	in := &ex.In
	if in.Source != nil && f.Memory != nil && !ex.opaque() {
		if err := f.receive(ex, limit); err != nil || in.Oversize {
			discard(in.Source)
			if err != nil {
				return err
			}
		}
	}
	if in.Oversize || in.Length > limit || int64(len(in.Body)) > limit {
		return problem.TooLarge.Newf("the request body exceeds %d bytes", limit).With("Connection", "close")
	}
	if in.Broken {
		return problem.BadRequest.New("the request body broke off").With("Connection", "close")
	}
	return nil
}

// opaque reports whether the call passes unread.
func (ex *Exchange) opaque() bool {
	if ex.Operation == nil {
		return false
	}
	row, _ := operation.Of(ex.Operation.ID)
	return row.Opaque
}

// bodyLimit is how many bytes the body may have: before the operation of a
// request to the run interface is known, as many as any of them takes.
func (ex *Exchange) bodyLimit() int64 {
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

// firstRead is what a body is given before anything of it has come, and most of
// what it is given at once unless its length was declared: a declaration costs
// its sender nothing.
const firstRead = 64 << 10

// maxDiscard bounds what is read of a body for nothing.
const maxDiscard = 32 << 20

// discard reads on: a client that is cut off while it sends does not read why.
func discard(source io.Reader) { _, _ = io.CopyN(io.Discard, source, maxDiscard) }

// receive reads the body. Its memory is reserved as it grows.
func (f Size) receive(ex *Exchange, limit int64) error {
	in := &ex.In
	if in.Oversize = in.Length > limit; in.Oversize {
		return nil
	}
	ex.memory = &held{memory: f.Memory}
	defer func() { ex.Event.BytesIn = int64(len(in.Body)) }()
	most := limit + 1 // one more byte shows that there are too many
	if in.Length >= 0 {
		most = in.Length + 1 // or the end
	}
	var b []byte
	for {
		if len(b) == cap(b) {
			grown := min(max(firstRead, 2*int64(cap(b))), most)
			if len(b) >= firstRead && in.Length >= 0 {
				grown = most
			}
			if !ex.memory.grow(grown - int64(cap(b))) {
				return problem.Overloaded.New("too many large bodies are under way").With("Retry-After", "1").With("Connection", "close")
			}
			b = append(make([]byte, 0, grown), b...)
		}
		n, err := in.Source.Read(b[len(b):cap(b)])
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

// Response gives the memory of the body back, if sending it has not.
func (f Size) Response(_ context.Context, ex *Exchange) error {
	if ex.memory != nil {
		ex.letGo()
		ex.Out.Body = nil
		ex.memory.free()
	}
	return nil
}

// letGo forgets the body, which nothing looks at once Out is made.
func (ex *Exchange) letGo() {
	ex.In.Body, ex.Doc = nil, nil
	if ex.Input != nil {
		in := *ex.Input
		in.Request.Body = nil
		ex.Input = &in
	}
}
