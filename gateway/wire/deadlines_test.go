package wire_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// counted is a connection that counts what reaches it.
type counted struct {
	net.Conn
	reads, deadlines atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	c.reads.Add(1)
	return c.Conn.Read(b)
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.deadlines.Add(1)
	return c.Conn.SetReadDeadline(t)
}

// answered is a judged connection behind its first request, whose client is client.
func answered(t *testing.T) (c net.Conn, inner *counted, client net.Conn) {
	t.Helper()
	client, server := net.Pipe()
	inner = &counted{Conn: server}
	c = wire.Wrap(inner)
	t.Cleanup(func() { _, _ = c.Close(), client.Close() })
	go func() { _, _ = io.WriteString(client, one) }()
	if n, err := c.Read(make([]byte, 4096)); n != len(one) || err != nil {
		t.Fatalf("Read = %d, %v, want the request", n, err)
	}
	return c, inner, client
}

// readsAhead reads one byte, as the server does while a handler works.
func readsAhead(c net.Conn) <-chan error {
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	synctest.Wait()
	return read
}

// The read behind a request that the handler answers soon neither reads from the
// connection nor changes its deadline; nor do deadlines between reads.
func TestAReadAheadIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, inner, _ := answered(t)
		for range 3 {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			_ = c.SetReadDeadline(time.Time{})
			read := readsAhead(c)
			time.Sleep(wire.Parking - 1)
			_ = c.SetReadDeadline(time.Unix(1, 0))
			if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read = %v, want a passed deadline", err)
			}
		}
		if reads, deadlines := inner.reads.Load(), inner.deadlines.Load(); reads != 1 || deadlines != 0 {
			t.Errorf("%d reads and %d deadlines, want that of the request and none", reads, deadlines)
		}
	})
}

// A parked read finds out that the client has left, or has half-closed the connection, when it has had the time to be answered, and at
// once that the connection was closed.
func TestAParkedReadSeesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, client := answered(t)
		_ = client.Close()
		begun := time.Now()
		const want = wire.Parking + wire.HalfClosed
		if err := <-readsAhead(c); !errors.Is(err, io.EOF) || time.Since(begun) != want {
			t.Errorf("Read = %v after %v, want the end after %v", err, time.Since(begun), want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, _, client := answered(t)
		_ = client.Close()
		read := readsAhead(c)
		time.Sleep(time.Second)
		_ = c.SetReadDeadline(time.Unix(1, 0)) // the server has answered
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read = %v, want a passed deadline", err)
		}
		_ = c.SetReadDeadline(time.Time{})
		if n, err := c.Read(make([]byte, 4096)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("Read = %d, %v, want the end", n, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := answered(t)
		read, begun := readsAhead(c), time.Now()
		_ = c.Close()
		if err := <-read; !errors.Is(err, io.ErrClosedPipe) || time.Since(begun) != 0 {
			t.Errorf("Read = %v after %v, want a closed connection at once", err, time.Since(begun))
		}
	})
}

// A deadline holds for the read that follows it, for one that is under way, and for
// what follows on a released connection.
func TestDeadlinesOfReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, inner, client := answered(t)
		timeout := func(what string, read <-chan error, after time.Duration) {
			t.Helper()
			begun := time.Now()
			if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != after {
				t.Errorf("%s: Read = %v after %v, want a passed deadline after %v", what, err, time.Since(begun), after)
			}
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		timeout("set before", readsAhead(c), time.Second)
		_ = c.SetReadDeadline(time.Time{})
		read := readsAhead(c)
		time.Sleep(time.Second)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		timeout("set meanwhile", read, time.Second)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		wire.Release(c)
		timeout("set before the release", readsAhead(c), time.Second)
		_ = c.SetReadDeadline(time.Time{})
		go func() { _, _ = io.WriteString(client, strings.ToLower(one)) }()
		if n, err := c.Read(make([]byte, 4096)); n != len(one) || err != nil || inner.reads.Load() != 5 {
			t.Errorf("Read = %d, %v after %d, want all that was sent by the fifth", n, err, inner.reads.Load())
		}
	})
}
