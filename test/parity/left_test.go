package parity

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// held makes the platform hold the calls that hold names until release is closed.
type held struct{ arrived, release chan struct{} }

// hold stands between a door's gateway and its platform.
func (h *held) hold(t *testing.T, method, path string) option {
	t.Helper()
	h.arrived, h.release = make(chan struct{}, 100), make(chan struct{})
	return between(t, func(_ *door, r *http.Request) {
		if r.Method == method && r.URL.Path == path {
			h.arrived <- struct{}{}
			<-h.release
		}
	}, func(*door, *http.Request) {})
}

// leave sends a request and resets the connection once the platform has it; the gateway knows.
func (d *door) leave(t *testing.T, h *held, raw string) {
	t.Helper()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	<-h.arrived
	before := d.lefts.Load()
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	world.Until(t, "word that the caller has left", func() bool { return d.lefts.Load() > before })
}

// TestTheRepeatOfACallerThatLeft gets the pod that is being made for it, whether it comes
// before the platform's answer or behind it, and at whichever phase of a second that was
// made: a Date has whole seconds, createdAt has not.
func TestTheRepeatOfACallerThatLeft(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"v2 pod", "v1 pod", "graphql pod"} {
		for _, phase := range []time.Duration{0, 1, 250, 500, 750, 999} {
			for _, soon := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%d ms/soon %t", what, phase, soon), func(t *testing.T) {
					t.Parallel()
					var h held
					phased := func(d *door) {
						d.platform.Clock().AdvanceTo(start.Add(phase * time.Millisecond))
					}
					d := openDoor(t, "http", phased, h.hold(t, "POST", "/v2/pods"))
					ask := makers[what].request("")
					d.leave(t, &h, ask)
					if soon {
						time.AfterFunc(10*time.Millisecond, func() { close(h.release) })
					} else {
						close(h.release)
						world.Until(t, "the end of the first request", func() bool { return len(d.logs.Exchanges(t)) == 1 })
					}
					again := d.ask(t, ask)
					made := d.made(t, "createPod")
					if len(made) != 1 || answeredID(again) != made[0] {
						t.Errorf("repeat: %d %s, want the one of %v", again.Status, again.Body, made)
					}
					if next := d.ask(t, ask); answeredID(next) == answeredID(again) {
						t.Errorf("the next request: %d %s, want one of its own", next.Status, next.Body)
					}
				})
			}
		}
	}
}

// TestOnlyA404SaysGone: a repeat is told of the pod that was made although the platform
// cannot be asked for it, and makes another only when the platform says that it is gone,
// and not in the first minute, in which it may not know of it yet.
func TestOnlyA404SaysGone(t *testing.T) {
	t.Parallel()
	var h held
	d := openDoor(t, "http", h.hold(t, "POST", "/v2/pods"), briefly)
	ask := makers["v2 pod"].request("")
	d.leave(t, &h, ask)
	close(h.release)
	world.Until(t, "the end of the first request", func() bool { return len(d.logs.Exchanges(t)) == 1 })
	d.platform.AddFault(platform.Fault{Operation: "getPod", Kind: platform.FaultStatus, Status: 500})
	if a := d.ask(t, ask); !unfinishedAnswer(a) {
		t.Errorf("while it cannot be read: %d %s, want 504", a.Status, a.Body)
	}
	d.platform.ClearFaults()
	made := d.made(t, "createPod")
	if len(made) != 1 {
		t.Fatalf("made %v, want one", made)
	}
	d.asPlatform(t, "DELETE", "/v2/pods/"+made[0], "")
	if a := d.ask(t, ask); !unfinishedAnswer(a) {
		t.Errorf("a moment after it was made: %d %s, want 504", a.Status, a.Body)
	}
	d.advance(time.Minute + time.Second)
	if a := d.ask(t, ask); a.Status != 201 || answeredID(a) == made[0] {
		t.Errorf("after it was deleted: %d %s, want another", a.Status, a.Body)
	}
}

// TestEqualCreatesOfCallersThatStay are as many as they are: each gets a pod of its own.
func TestEqualCreatesOfCallersThatStay(t *testing.T) {
	t.Parallel()
	const several = 20
	for _, what := range []string{"v2 pod", "v1 pod", "graphql pod"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, "http")
			ids := make(chan string, several)
			for range several {
				go func() { ids <- answeredID(d.ask(t, makers[what].request(""))) }()
			}
			got := make(map[string]bool)
			for range several {
				got[<-ids] = true
			}
			if made := d.made(t, "createPod"); len(made) != several || len(got) != several || got[""] {
				t.Errorf("%d pods, answered %v, want %d each with its own", len(made), got, several)
			}
		})
	}
}
