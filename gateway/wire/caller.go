package wire

import (
	"context"
	"net"
	"syscall"
)

// connection is the key of the connection in the contexts of its requests.
type connection struct{}

// ConnContext notes a connection in the contexts of its requests: it is the ConnContext of a
// server over a Listener.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if j, judged := c.(*conn); judged {
		c = j.Conn
	}
	return context.WithValue(ctx, connection{}, c)
}

// Conn returns the connection that a request came by, below the Listener; nil is unknown.
func Conn(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connection{}).(net.Conn)
	return c
}

// ClientGone reports whether the caller of a request has left: its context has ended, or the
// connection was closed at the other end, which the server learns of a moment later, or long
// after if the process stood still. The context alone tells if the connection is not known
// to [ConnContext], or the system does not say.
func ClientGone(ctx context.Context) bool {
	return ctx.Err() != nil || closed(Conn(ctx))
}

// closed reports whether the other end of a connection has closed it.
func closed(c net.Conn) (is bool) {
	for {
		switch have := c.(type) {
		case syscall.Conn:
			raw, err := have.SyscallConn()
			if err != nil {
				return true // it is closed here
			}
			return raw.Control(func(fd uintptr) { is = hungUp(fd) }) != nil || is
		case interface{ NetConn() net.Conn }:
			c = have.NetConn()
		default:
			return false
		}
	}
}
