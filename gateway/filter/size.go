package filter

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// MaxBody is the platform's limit for a REST body, in bytes (reference
// platform-v2, section 1.3). The gateway holds its callers to the same.
const MaxBody = 102400

// Size refuses bodies over MaxBody before anything else is looked at. It runs
// in the head, where it sees what was declared, and again with the body, where
// it counts, because a declared length may lie.
type Size struct{}

// Name implements Filter.
func (Size) Name() string { return "size" }

// Request refuses with 413, and with 400 a body that broke off.
func (Size) Request(_ context.Context, ex *Exchange) error {
	if ex.In.Oversize || ex.In.Length > MaxBody || len(ex.In.Body) > MaxBody {
		return problem.TooLarge.Newf("the request body exceeds %d bytes", MaxBody).With("Connection", "close")
	}
	if ex.In.Broken {
		return problem.BadRequest.New("the request body broke off").With("Connection", "close")
	}
	return nil
}
