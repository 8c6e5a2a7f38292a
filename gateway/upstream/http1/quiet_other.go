//go:build !unix

package lean

import "net"

// peeker looks whether anything waits to be read on a connection. Where that is not
// possible, something might, and none is used again.
type peeker struct{}

func newPeeker(net.Conn) *peeker { return nil }

func (*peeker) quiet() bool { return false }

func (*peeker) waiting() bool { return false }
