package wire

import (
	"context"
	"net"
	"syscall"
)

// connection is the context key of the connection.
type connection struct{}

// ConnContext returns a context that contains c, for [Conn] and [ClientGone]. Use it as the ConnContext of an http.Server that serves a
// listener of this package.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if j, validated := c.(*conn); validated {
		c = j.Conn
	}
	return context.WithValue(ctx, connection{}, c)
}

// Conn returns the connection on which a request arrived. ctx is the context of the request. Conn returns nil if ctx was not created with
// [ConnContext].
func Conn(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connection{}).(net.Conn)
	return c
}

// ClientGone reports whether the client of a request has disconnected. ctx is the context of the request. Because the server notices a
// disconnect with a delay, ClientGone checks both ctx and the connection. It checks only ctx if the connection is unknown (see [Conn]) or
// if the operating system does not support the check.
func ClientGone(ctx context.Context) bool {
	return ctx.Err() != nil || closed(Conn(ctx))
}

// closed reports whether the other end has closed a connection.
func closed(c net.Conn) (is bool) {
	inner, known := innermost(c).(syscall.Conn)
	if !known {
		return false
	}
	raw, err := inner.SyscallConn()
	if err != nil {
		return true // already closed on this side
	}
	return raw.Control(func(fd uintptr) { is = hungUp(fd) }) != nil || is
}

// innermost returns the connection below all layers, such as TLS.
func innermost(c net.Conn) net.Conn {
	for {
		layer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = layer.NetConn()
	}
}
