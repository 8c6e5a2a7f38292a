package listen

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// NewReserved returns inner with descriptors in reserve, for a listener that must answer
// when the process has no others left: a connection that is accepted then takes two of
// them, one for itself and one for what answers it, and gives them back when it is closed.
func NewReserved(inner net.Listener, connections int) net.Listener {
	l := &reserved{Listener: inner, want: connections * perConnection}
	l.fill()
	return l
}

// perConnection is how many descriptors are freed for one.
const perConnection = 2

type reserved struct {
	net.Listener
	want int

	mu     sync.Mutex // guards what follows
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

// reservedConn is a connection by descriptors of a reserve.
type reservedConn struct {
	wrapped
	from *reserved
}

// Close implements net.Conn.
func (c reservedConn) Close() error {
	defer c.from.fill()
	return c.Conn.Close()
}

// free closes the descriptors of one connection, and reports whether there was any.
func (l *reserved) free() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := max(0, len(l.files)-perConnection)
	freed := l.files[kept:]
	closeAll(freed)
	l.files = l.files[:kept]
	return len(freed) > 0
}

// fill takes the descriptors that the reserve lacks, as far as there are descriptors.
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
