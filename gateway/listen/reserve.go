package listen

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// NewReserved returns a listener that reserves file descriptors for the given number of connections. If the process has no free
// descriptors, a new connection uses two reserved descriptors, one for the connection and one for serving requests. They are reserved again
// when the connection is closed.
func NewReserved(inner net.Listener, connections int) net.Listener {
	l := &reserved{Listener: inner, want: connections * perConnection}
	l.fill()
	return l
}

// perConnection is the number of descriptors reserved per connection.
const perConnection = 2

type reserved struct {
	net.Listener
	want int

	mu     sync.Mutex // guards the fields below
	closed bool
	files  []*os.File
}

// Accept implements net.Listener.
func (l *reserved) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if !errors.Is(err, syscall.EMFILE) || !l.free() {
		l.fill()
		return c, err
	}
	if c, err = l.Listener.Accept(); err != nil {
		l.fill()
		return nil, err
	}
	return reservedConn{wrapped{c}, l}, nil
}

// reservedConn is a connection that uses reserved descriptors.
type reservedConn struct {
	wrapped
	from *reserved
}

// Close implements net.Conn.
func (c reservedConn) Close() error {
	defer c.from.fill()
	return c.Conn.Close()
}

// free releases the reserved descriptors for one connection. It returns false if no descriptors are reserved.
func (l *reserved) free() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := max(0, len(l.files)-perConnection)
	freed := l.files[kept:]
	closeAll(freed)
	l.files = l.files[:kept]
	return len(freed) > 0
}

// fill reserves descriptors until the intended number is reached or no descriptors are available.
func (l *reserved) fill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && len(l.files) < l.want {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		l.files = append(l.files, f)
	}
}

// Close implements net.Listener.
func (l *reserved) Close() error {
	l.mu.Lock()
	closeAll(l.files)
	l.closed, l.files = true, nil
	l.mu.Unlock()
	return l.Listener.Close()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
}
