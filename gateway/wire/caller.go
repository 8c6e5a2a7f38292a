package wire

import (
	"context"
	"net"
	"syscall"
)

// connection is the context key of the connection.
type connection struct{}

// ConnContext stores a connection in the contexts of its requests. Use it as http.Server.ConnContext with a listener of this package.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if j, validated := c.(*conn); validated {
		c = j.Conn
	}
	return context.WithValue(ctx, connection{}, c)
}

// Conn returns the connection on which a request arrived, or nil if the connection is unknown.
func Conn(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connection{}).(net.Conn)
	return c
}

// ClientGone reports whether the client of a request has disconnected. It checks the context and the connection itself, because the server
// notices a disconnect later, and much later if the process was paused. If the connection is not known from [ConnContext], or the system
// does not support the check, only the context is used.
func ClientGone(ctx context.Context) bool {
	return ctx.Err() != nil || closed(Conn(ctx))
}

// closed reports whether the other end has closed a connection.
func closed(c net.Conn) (is bool) {
	for {
		switch have := c.(type) {
		case syscall.Conn:
			raw, err := have.SyscallConn()
			if err != nil {
				return true // already closed on this side
			}
			return raw.Control(func(fd uintptr) { is = hungUp(fd) }) != nil || is
		case interface{ NetConn() net.Conn }:
			c = have.NetConn()
		default:
			return false
		}
	}
}
