package parity

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/world"
)

// A revoked certificate is refused from the next request on, on connections that are open, and
// nothing is accepted while no list is current; other authorities are taken as they come.
func TestRevocationsAreReloaded(t *testing.T) {
	t.Parallel()
	c := openCertified(t, false)
	with, list := c.mesh.Client(t, ann, func(c *x509.Certificate) { c.NotAfter = start.Add(20 * time.Hour) }), anonymous("GET", "/v2/pods", "")
	conn := c.connect(t, with)
	expect := func(what string, want int) {
		t.Helper()
		for on, conn := range map[string]*tls.Conn{"an open": conn, "a new": c.connect(t, with)} {
			if a := askOn(t, conn, list); a.Status != want {
				t.Errorf("%s, on %s connection: %d %s, want %d", what, on, a.Status, a.Body, want)
			}
		}
	}
	expect("a good certificate", 200)
	c.swap(t, map[string]string{"REVOKED": c.mesh.Revoked(t, start.Add(time.Hour), with)})
	expect("a revoked one", 401)
	c.swap(t, map[string]string{"REVOKED": c.mesh.Revoked(t, start.Add(time.Hour))})
	expect("one that is not revoked any more", 200)
	w := httptest.NewRecorder()
	c.providers.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if want := `tollgate_revocations_left_seconds{authority="mesh"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("no metric %s", want)
	}
	c.advance(time.Hour)
	expect("a list that has expired", 401)
	c.swap(t, map[string]string{"REVOKED": world.NewAuthority(t, "mesh", start).Revoked(t, start.Add(24*time.Hour))})
	expect("a list that another has signed", 401)
	c.swap(t, map[string]string{"REVOKED": c.mesh.Revoked(t, start.Add(24*time.Hour))})
	expect("a fresh list", 200)
	next := world.NewAuthority(t, "mesh", start)
	c.swap(t, map[string]string{"MESH": next.PEM(), "REVOKED": next.Revoked(t, start.Add(24*time.Hour))})
	expect("another authority of the same name", 401)
	c.swap(t, map[string]string{"MESH": next.PEM() + c.mesh.PEM(), "REVOKED": next.Revoked(t, start.Add(24*time.Hour)) + c.mesh.Revoked(t, start.Add(24*time.Hour))})
	expect("both", 200)
	c.advance(19 * time.Hour)
	expect("one that has expired", 401)
}

// A connection that resumes a session is of the caller whose certificate opened that, and
// is refused when that was revoked in between.
func TestCertificatesOfResumedSessions(t *testing.T) {
	t.Parallel()
	c := openCertified(t, false)
	with, list := c.mesh.Client(t, ann), anonymous("GET", "/v2/pods", "")
	c.sessions = tls.NewLRUClientSessionCache(1)
	for i, want := range []int{200, 200, 401} {
		if want == http.StatusUnauthorized {
			c.swap(t, map[string]string{"REVOKED": c.mesh.Revoked(t, start.Add(time.Hour), with)})
		}
		conn := c.connect(t, with)
		if a := askOn(t, conn, list); a.Status != want {
			t.Errorf("connection %d: %d %s, want %d", i+1, a.Status, a.Body, want)
		}
		if resumed := conn.ConnectionState().DidResume; resumed != (i > 0) {
			t.Errorf("connection %d is resumed: %t", i+1, resumed)
		}
	}
}

// A stream ends when the certificate does that opened it, when that is revoked, and, where
// certificates are required, though a key has opened it.
func TestStreamsEndWithCertificates(t *testing.T) {
	t.Parallel()
	c := openCertified(t, true)
	good := c.mesh.Client(t, ann)
	pod := c.ask(t, good, anonymous("POST", "/v2/pods", pod4090))
	if pod.Status != 201 {
		t.Fatalf("create: %d %s", pod.Status, pod.Body)
	}
	target := "/v2/pods/" + fmt.Sprint(field(t, pod.Body, "id")) + "/logs"
	open := func(with *tls.Certificate, raw string) io.Reader {
		t.Helper()
		conn := c.connect(t, with)
		if _, err := io.WriteString(conn, raw); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // ends with its connection
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("stream: %+v, %v", res, err)
		}
		return res.Body
	}
	brief := func(c *x509.Certificate) { c.NotAfter = start.Add(time.Second) }
	for _, raw := range []string{anonymous("GET", target, ""), request("GET", target, "key_platform", "")} {
		_, _ = io.Copy(io.Discard, open(c.mesh.Client(t, ann, brief), raw)) // until it is cut; without that, until the test times out
	}
	for _, raw := range []string{anonymous("GET", target, ""), request("GET", target, "key_platform", "")} {
		stream := open(good, raw)
		if _, err := stream.Read(make([]byte, 1)); err != nil {
			t.Fatalf("the stream does not flow: %v", err)
		}
		c.swap(t, map[string]string{"REVOKED": c.mesh.Revoked(t, start.Add(24*time.Hour), good)})
		_, _ = io.Copy(io.Discard, stream)
		c.swap(t, map[string]string{"REVOKED": c.mesh.Revoked(t, start.Add(24*time.Hour))})
	}
}

// Headers of a caller about a certificate identify it through no door, and does not reach the
// platform.
func TestForwardedCertificatesAreNotBelieved(t *testing.T) {
	t.Parallel()
	mesh := world.NewAuthority(t, "mesh", start)
	good := mesh.Client(t, ann)
	eachDoor(t, func(t *testing.T, d *door) {
		for _, raw := range []string{anonymous("GET", "/v2/pods", "", forwarded(good)), anonymous("GET", "/v1/pods", "", forwarded(good))} {
			if a := d.ask(t, raw); a.Status != 401 {
				t.Errorf("a forwarded certificate: %d %s, want 401", a.Status, a.Body)
			}
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_research", "", forwarded(good))); a.Status != 200 {
			t.Errorf("a forwarded certificate and a key: %d %s, want 200", a.Status, a.Body)
		}
		if got := strings.Join(platformCalls(d), ""); !strings.Contains(got, "/v2/pods") || strings.Contains(got, "Client-Cert") {
			t.Errorf("the platform got %s, want no certificate", got)
		}
	})
}
