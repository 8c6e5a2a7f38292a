package listen_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/listen"
)

// piped is a listener of pipes, all from one address.
type piped chan net.Conn

func (p piped) Accept() (net.Conn, error) { return from{<-p}, nil }
func (piped) Close() error                { return nil }
func (piped) Addr() net.Addr              { return peer("127.0.0.1:80") }

type from struct{ net.Conn }

func (from) RemoteAddr() net.Addr { return peer("1.1.1.1:1") }
func (from) CloseWrite() error    { return nil }

// accept dials and accepts a connection.
func (p piped) accept(t *testing.T, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client, inner := net.Pipe()
	go func() { p <- inner }()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// A connection over a bound has a second for its head, even if the server allows more, and is
// answered then; with its head heard it has no such bound, and its place is given back.
func TestSpareConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused int
		p := make(piped)
		l := listen.NewBounded(p, listen.Bounds{
			PerAddress: 1, Spare: 8,
			Refused: func(net.Addr) { refused++ },
			Full:    []byte("full"), Crowded: []byte("many"),
		})
		_, within := p.accept(t, l)
		if over, _ := listen.OverBound(within); over {
			t.Error("a connection within the bounds is said to be over one")
		}
		begun := time.Now()
		client, late := p.accept(t, l)
		if err := late.SetDeadline(begun.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		answered := make(chan string)
		go func() {
			text := make([]byte, 10)
			n, _ := client.Read(text)
			answered <- string(text[:n])
			_, _ = io.Copy(io.Discard, client)
		}()
		ended := make(chan error)
		go func() {
			_, err := late.Read(make([]byte, 1))
			ended <- err
		}()
		if got := <-answered; got != "many" || time.Since(begun) != time.Second {
			t.Errorf("answered %q after %s, want \"many\" after 1 s", got, time.Since(begun))
		}
		_ = client.Close()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || refused != 1 {
			t.Errorf("read = %v with %d refusals, want the end of its time and 1", err, refused)
		}
		_ = late.Close()

		sender, heard := p.accept(t, l)
		if over, full := listen.OverBound(heard); !over || full {
			t.Errorf("Excess = %t, %t, want over the bound of its address", over, full)
		}
		go func() {
			<-time.After(time.Hour)
			_, _ = io.WriteString(sender, "x")
		}()
		if n, err := heard.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("after an hour: %d bytes, %v; want one", n, err)
		}
	})
}

// An address has an eighth of the spare places.
func TestSparePlaces(t *testing.T) {
	s := &script{peers: strings.Fields("1.1.1.1:1 1.1.1.1:2 1.1.1.1:3 1.1.1.1:4 2.2.2.2:1 2.2.2.2:2")}
	conns, got := accepted(t, listen.NewBounded(s, listen.Bounds{Total: 1, Spare: 16}))
	if want := "1.1.1.1:1 1.1.1.1:2 1.1.1.1:3 2.2.2.2:1 2.2.2.2:2"; strings.Join(got, " ") != want {
		t.Errorf("accepted %v, want %s", got, want)
	}
	if over, full := listen.OverBound(conns[1]); !over || !full {
		t.Errorf("Excess = %t, %t, want over the bound of all", over, full)
	}
}
