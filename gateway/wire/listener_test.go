package wire_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is one server of package net/http behind a judged listener.
type served struct {
	addr string
	mu   sync.Mutex // guards refused
	seen []wire.Refusal
}

func (s *served) refused() []wire.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func serve(t *testing.T, h http.HandlerFunc) *served {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{addr: inner.Addr().String()}
	l := wire.NewListener(inner, func(client net.Addr, r *wire.Refusal) {
		if client == nil {
			t.Error("a refusal is reported without the address of the client")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, *r)
	})
	server := &http.Server{Handler: wire.NormalizeRequests(h), ReadHeaderTimeout: time.Minute, ConnContext: wire.ConnContext}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := await(t, "Serve", done); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// echo answers with its reading of the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "broken")
		return
	}
	_, _ = io.WriteString(w, r.Method+" "+r.RequestURI+" "+string(body))
}

// patience bounds the exchange of a test with its server: a fault that leaves a request without an answer fails the test and does not
// hang it.
const patience = 5 * time.Second

// dial connects to a server for at most patience.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// await receives from a channel for at most patience.
func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: nothing after %s", what, patience)
	}
	return v
}

// talk sends raw bytes on one connection and returns all answers up to its end,
// as "status body".
func talk(t *testing.T, addr, raw string) []string {
	t.Helper()
	conn := dial(t, addr)
	go func() { _, _ = io.WriteString(conn, raw) }()
	return answers(t, conn)
}

func answers(t *testing.T, conn net.Conn) []string {
	t.Helper()
	var got []string
	for r := bufio.NewReader(conn); ; {
		if _, err := r.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("after %q: no answer within %s", got, patience)
		} else if err != nil {
			return got
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		_ = res.Body.Close()
		got = append(got, res.Status[:3]+" "+string(body))
	}
}

const last = "GET /last HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n"

func TestGoodRequestsAreServedInARow(t *testing.T) {
	t.Parallel()
	s := serve(t, echo)
	got := talk(t, s.addr, one+chunked+"2\r\n{}\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n"+post+"Content-Length: 3\r\n\r\nxyz"+last)
	want := []string{"200 GET /v2/pods?a=%20b ", "200 POST /v2/pods {}abc", "200 POST /v2/pods xyz", "200 GET /last "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if r := s.refused(); len(r) != 0 {
		t.Errorf("refused %v", r)
	}
}

// One empty line before a request is dropped, whatever the pieces it comes in; two are refused.
func TestEmptyLinesBeforeARequest(t *testing.T) {
	t.Parallel()
	s := serve(t, echo)
	body := post + "Content-Length: 3\r\n\r\nxyz"
	for name, tc := range map[string]struct {
		pieces []string
		want   []string
	}{
		"first":           {[]string{"\r\n" + last}, []string{"200 GET /last "}},
		"in pieces":       {[]string{"\r", "\n", last}, []string{"200 GET /last "}},
		"behind a body":   {[]string{body + "\r\n" + last}, []string{"200 POST /v2/pods xyz", "200 GET /last "}},
		"behind chunks":   {[]string{chunked + "0\r\n\r\n\r\n" + last}, []string{"200 POST /v2/pods ", "200 GET /last "}},
		"each":            {[]string{"\r\n" + body + "\r\n" + body + "\r", "\n" + last}, []string{"200 POST /v2/pods xyz", "200 POST /v2/pods xyz", "200 GET /last "}},
		"two":             {[]string{"\r\n\r\n" + last}, []string{"400"}},
		"half":            {[]string{"\r" + last}, []string{"400"}},
		"half, in pieces": {[]string{body + "\r", last}, []string{"200 POST /v2/pods xyz", "400"}},
	} {
		conn := dial(t, s.addr)
		for _, piece := range tc.pieces {
			if _, err := io.WriteString(conn, piece); err != nil {
				t.Fatal(err)
			}
		}
		got := answers(t, conn)
		_ = conn.Close()
		for i := range got {
			if strings.HasPrefix(got[i], "400") {
				got[i] = "400"
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: answers (-want +got):\n%s", name, diff)
		}
	}
}

// HTTP/1.0 ends with its connection: in order behind a whole response, and with a reset behind one that breaks off.
func TestOldResponsesEndWithTheConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "part")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	})
	for path, broken := range map[string]bool{"/whole": false, "/broken": true} {
		conn := dial(t, s.addr)
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		_ = conn.Close()
		if errors.Is(err, syscall.ECONNRESET) != broken || !broken && !strings.HasSuffix(string(got), "\r\n\r\npart") {
			t.Errorf("%s: %q, then %v", path, got, err)
		}
	}
}

func TestARefusalIsTheLastAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, echo)
	conn := dial(t, s.addr)
	if _, err := io.WriteString(conn, "GET / HTTP/1.2\r\nHost: gw\r\n\r\n"+one); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(got), "\r\nDate: ")
	date, _, _ := strings.Cut(after, "\r\n")
	if at, err := http.ParseTime(date); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("dated %q, want now", date)
	}
	want := "HTTP/1.1 505 HTTP Version Not Supported\r\nDate: " + date + "\r\n" +
		"Content-Type: application/problem+json\r\nContent-Length: 103\r\nConnection: close\r\n\r\n" +
		`{"title":"HTTP Version Not Supported","status":505,"detail":"only HTTP/1.1 and HTTP/1.0 are supported"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if r := s.refused(); len(r) != 1 || r[0].Status != http.StatusHTTPVersionNotSupported {
		t.Errorf("told of %v, want the one refusal", r)
	}
}

// Every stream that must not pass, alone and behind a good request, on a real
// connection: the handler sees the good one only.
func TestNoHandlerSeesWhatIsRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen++
		mu.Unlock()
		echo(w, r)
	})
	for name, tc := range refusals {
		mu.Lock()
		seen = 0
		mu.Unlock()
		got := talk(t, s.addr, one+tc.stream)
		if len(got) != 2 || !strings.HasPrefix(got[0], "200 GET ") {
			t.Errorf("%s: answers %q, want the good one's and a refusal", name, got)
			continue
		}
		if want := `{"title":"`; !strings.HasPrefix(got[1], "4") && !strings.HasPrefix(got[1], "5") || !strings.Contains(got[1], want) {
			t.Errorf("%s: refused with %q, want problem details", name, got[1])
		}
		mu.Lock()
		if seen != 1 {
			t.Errorf("%s: the handler ran %d times, want 1", name, seen)
		}
		mu.Unlock()
	}
	if r := s.refused(); len(r) != len(refusals) {
		t.Errorf("told of %d refusals, want %d", len(r), len(refusals))
	}
}

func TestABrokenBodyIsTheHandlersError(t *testing.T) {
	t.Parallel()
	s := serve(t, echo)
	for name, body := range chunkFaults {
		got := talk(t, s.addr, chunked+body+one)
		if diff := cmp.Diff([]string{"400 broken"}, got); diff != "" {
			t.Errorf("%s: answers (-want +got):\n%s", name, diff)
		}
	}
	if r := s.refused(); len(r) != len(chunkFaults) {
		t.Errorf("told of %d refusals, want %d", len(r), len(chunkFaults))
	}
}

// A bad request that arrives while a handler works must neither disturb the
// handler nor be answered before it.
func TestARefusalWaitsForTheAnswerBefore(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]string{
		"bad first byte": " GET / HTTP/1.1\r\n",
		"bad later":      "GET / HTTP/1.1\r\nHost : gw\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			working, proceed := make(chan struct{}), make(chan struct{})
			gone := make(chan bool, 1)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				close(working)
				<-proceed
				gone <- r.Context().Err() != nil
				echo(w, r)
			})
			conn := dial(t, s.addr)
			if _, err := io.WriteString(conn, "GET /slow HTTP/1.1\r\nHost: gw\r\n\r\n"+behind); err != nil {
				t.Fatal(err)
			}
			await(t, "the handler", working)
			if _, err := io.WriteString(conn, behind); err != nil {
				t.Fatal(err)
			}
			close(proceed)
			got := answers(t, conn)
			if await(t, "the handler", gone) {
				t.Error("the handler was told that its client left")
			}
			if len(got) != 2 || got[0] != "200 GET /slow " || !strings.HasPrefix(got[1], "400 ") {
				t.Errorf("answers %q, want the handler's and then the refusal", got)
			}
		})
	}
}

// A client that has sent much more than was read still gets to read why.
func TestARefusalSurvivesWhatWasNotRead(t *testing.T) {
	t.Parallel()
	s := serve(t, echo)
	got := talk(t, s.addr, "GET / HTTP/1.1\r\nHost: gw\r\n\r\r"+strings.Repeat("x", 1<<20))
	if len(got) != 1 || !strings.HasPrefix(got[0], "400 ") {
		t.Errorf("answers %q, want one refusal", got)
	}
}

// pieces is a connection whose peer sends one piece for each read and says
// nothing more; written bytes are kept.
type pieces struct {
	net.Conn
	in  []string
	out strings.Builder
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.in[0])
	if p.in[0] = p.in[0][n:]; p.in[0] == "" {
		p.in = p.in[1:]
	}
	return n, nil
}

func (p *pieces) Write(b []byte) (int, error)     { return p.out.Write(b) }
func (p *pieces) LocalAddr() net.Addr             { return &net.TCPAddr{} }
func (p *pieces) RemoteAddr() net.Addr            { return &net.TCPAddr{} }
func (p *pieces) SetDeadline(time.Time) error     { return nil }
func (p *pieces) SetReadDeadline(time.Time) error { return nil }
func (p *pieces) Close() error                    { return nil }

func TestNoReadReturnsTwoMessages(t *testing.T) {
	t.Parallel()
	c := wire.Wrap(&pieces{in: []string{one + one + one[:5], one[5:]}})
	for _, want := range []string{one, one, one[:5], one[5:]} {
		b := make([]byte, 1000)
		n, err := c.Read(b)
		if err != nil || string(b[:n]) != want {
			t.Fatalf("Read = %q, %v, want %q", b[:n], err, want)
		}
	}
	if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read at the end = %d, %v, want the inner connection's EOF", n, err)
	}
}

func TestNothingIsWrittenBehindARefusal(t *testing.T) {
	t.Parallel()
	inner := &pieces{in: []string{"GET  "}}
	c := wire.Wrap(inner)
	b := make([]byte, 100)
	if n, err := c.Read(b); n != 4 || err != nil {
		t.Fatalf("Read = %d, %v, want the 4 bytes before the fault", n, err)
	}
	if inner.out.Len() != 0 {
		t.Fatalf("wrote %q before the next read", inner.out.String())
	}
	for range 2 {
		n, err := c.Read(b)
		op, ok := errors.AsType[*net.OpError](err)
		if n != 0 || !ok || op.Op != "read" {
			t.Fatalf("Read = %d, %v, want a read error", n, err)
		}
	}
	refusal := inner.out.String()
	if !strings.HasPrefix(refusal, "HTTP/1.1 400 Bad Request\r\n") || strings.Count(refusal, "HTTP/1.1") != 1 {
		t.Errorf("wrote %q, want one refusal", refusal)
	}
	if n, err := c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); n != 0 || err == nil {
		t.Errorf("Write = %d, %v, want an error", n, err)
	}
	if inner.out.String() != refusal {
		t.Errorf("wrote %q behind the refusal", inner.out.String()[len(refusal):])
	}
}
