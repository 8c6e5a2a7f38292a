package world

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Request writes one request with a key, unless that is "". Header lines are
// complete, without line ends. A body gets the JSON content type and its length,
// unless the header tells a type, a length or a transfer coding.
func Request(method, target, key, body string, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: gateway.test\r\n", method, target)
	if key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", key)
	}
	for _, h := range header {
		b.WriteString(h + "\r\n")
	}
	told := func(name string) bool {
		return slices.ContainsFunc(header, func(h string) bool { return strings.HasPrefix(strings.ToLower(h), name) })
	}
	if body != "" && !told("content-type") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	if body != "" && !told("transfer-encoding") && !told("content-length") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}

// Chunked writes parts in the chunked transfer coding.
func Chunked(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	return b.String() + "0\r\n\r\n"
}

// Answer is a response as a caller sees it.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Dial connects until the test ends.
func Dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Ask sends a request on a connection of its own and reads the answer.
func Ask(t testing.TB, addr, raw string) Answer {
	t.Helper()
	conn := Dial(t, addr)
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	return Read(t, bufio.NewReader(conn), raw)
}

// Read reads the answer to a request, behind any 100 Continue.
func Read(t testing.TB, r *bufio.Reader, raw string) Answer {
	t.Helper()
	method, _, _ := strings.Cut(raw, " ")
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	for err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(r, &http.Request{Method: method})
	}
	if err != nil {
		t.Fatalf("no answer to %.60q: %v", raw, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("the body of the answer to %.60q: %v", raw, err)
	}
	return Answer{res.StatusCode, res.Header, string(body)}
}
