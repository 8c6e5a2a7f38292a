package runs

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tollgate-dev/tollgate/test/world"
)

// drain begins to stop a gateway and returns once its listener is closed; ended is
// closed when the gateway has stopped.
func (r *rig) drain(t *testing.T, end func()) (ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{})
	go func() { defer close(ended); end() }()
	world.Until(t, "the listener is closed", func() bool {
		conn, err := net.Dial("tcp", r.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	return ended
}

// TestDrainLetsStreamsFinish: events go on while the gateway stops, and the end is
// a whole one.
func TestDrainLetsStreamsFinish(t *testing.T) {
	given, ended := make(chan string), make(chan error, 1)
	r := newRig(t, top("timeouts: {drain: 1m}"), upstream(t, events(given, ended)))
	end := r.run(t)
	_, body := open(t, r)
	given <- "data: 1\n\n"
	if _, err := body.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stopped := r.drain(t, end)
	for range 10 {
		given <- "data: 2\n\n"
	}
	given <- "data: [DONE]\n\n"
	close(given)
	rest, err := io.ReadAll(body)
	if err != nil || strings.Count(string(rest), "data: 2") != 10 || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the rest of the stream is %q, %v", rest, err)
	}
	<-stopped
	r.wantOutcome(t, "ok")
}

// TestDrainCutsLateStreams: a stream that does not end by itself is ended in time, and never looks
// whole.
func TestDrainCutsLateStreams(t *testing.T) {
	given, ended := make(chan string), make(chan error, 1)
	r := newRig(t, top("timeouts: {drain: 300ms}"), upstream(t, events(given, ended)))
	end := r.run(t)
	_, body := open(t, r)
	given <- "data: 1\n\n"
	if _, err := body.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	<-r.drain(t, end)
	if rest, err := io.ReadAll(body); err == nil {
		t.Errorf("the stream ended in order with %q", rest)
	}
	if err := <-ended; err == nil {
		t.Error("the platform could go on writing")
	}
	r.wantOutcome(t, "terminated")
}

// TestDrainOfWebSockets: they go on until the time to finish is over.
func TestDrainOfWebSockets(t *testing.T) {
	r := newRig(t, emulated(t), top("timeouts: {drain: 2s}"))
	end := r.run(t)
	conn, _, err := r.dial(t, "/lb/"+r.balanced(t)+"/socket", "")
	if err != nil {
		t.Fatal(err)
	}
	stopped := r.drain(t, end)
	begin := time.Now()
	echo(t, conn, websocket.MessageText, "still here")
	if _, _, err := conn.Read(t.Context()); err == nil {
		t.Error("a message that was not sent")
	}
	<-stopped
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("the gateway stopped after %v", took)
	}
	if text := r.logs.String(); !strings.Contains(text, `"http.response.status_code":101`) || !strings.Contains(text, "the gateway is stopping") {
		t.Error("no event says that the gateway cut the WebSocket")
	}
}
