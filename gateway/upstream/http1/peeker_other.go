//go:build !unix

package lean

import "net"

// peeker checks whether unread data is available on a connection. On this platform that is impossible, so connections are never reused.
type peeker struct{}

func newPeeker(net.Conn) *peeker { return nil }

func (*peeker) quiet() bool { return false }

func (*peeker) waiting() bool { return false }
