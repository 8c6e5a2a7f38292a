package wire_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// FuzzScan cuts a stream at places of the fuzzer's choice and holds the framer
// to three things. Where the pieces are cut changes nothing. A second reading
// of what passed, written without any state, finds the same messages and
// nothing the contract forbids. And package net/http, given only what passed,
// parses each message to that same method, target, headers and body and ends it
// at the same byte.
func FuzzScan(f *testing.F) {
	f.Add([]byte(one+one), uint8(3))
	f.Add([]byte(one+chunked+"2;a=b\r\n{}\r\n0\r\nA: b\r\n\r\n"+last), uint8(1))
	f.Add([]byte("POST HTTP://gw:80?a HTTP/1.0\r\nContent-Length: 1\r\n\r\nx"+last), uint8(2))
	f.Add([]byte(post+"Content-Length: 3\r\nExpect: 100-continue\r\n\r\nxyz"+last), uint8(0))
	for _, tc := range refusals {
		if len(tc.stream) < 1<<10 {
			f.Add([]byte(one+tc.stream), uint8(0))
		}
	}
	for _, body := range chunkFaults {
		if len(body) < 1<<10 {
			f.Add([]byte(chunked+body), uint8(5))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		got := judge(string(stream), 1<<20)
		if cut := judge(string(stream), int(size)+1); !slices.Equal(got.Messages, cut.Messages) || got.Status != cut.Status || got.Rest != cut.Rest {
			t.Fatalf("whole: %+v\nin pieces of %d: %+v", got, int(size)+1, cut)
		}
		if !strings.HasPrefix(string(stream), strings.Join(got.Messages, "")+got.Rest) {
			t.Fatalf("passed %+v, which is no prefix of the stream", got)
		}
		passed := strings.Join(got.Messages, "")
		r := bufio.NewReader(strings.NewReader(passed))
		rest := passed
		for i, m := range got.Messages {
			want, ok := reread(m)
			if !ok {
				t.Fatalf("message %d passed against the contract: %q", i, m)
			}
			req, err := http.ReadRequest(r)
			if err != nil {
				t.Fatalf("message %d passed and net/http refuses it: %v\n%q", i, err, m)
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Fatalf("message %d passed and net/http refuses its body: %v\n%q", i, err, m)
			}
			if have := reading(req.Method, req.RequestURI, req.Host, fields(req.Header), body); have != want {
				t.Fatalf("message %d read in two ways:\nnet/http: %s\ncontract: %s", i, have, want)
			}
			rest = strings.TrimPrefix(rest, m)
			if left := r.Buffered(); left != len(rest) && left < 4096-len(m) {
				t.Fatalf("message %d: net/http left %d bytes, want %d", i, left, len(rest))
			}
		}
	})
}

// The contract once more, as patterns over a whole message.
var (
	headPattern  = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (/" + restPattern + "|(?i:https?)://([-0-9A-Za-z._~]+(?::[0-9]*)?)(?:[/?]" + restPattern + ")?) HTTP/1\\.([01])\r\n((?:" + fieldPattern + ")*)\r\n")
	chunkPattern = regexp.MustCompile("^([0-9A-Fa-f]{1,8})(?:;[\t\x20-\x7e]*)?\r\n")
	tailPattern  = regexp.MustCompile("^(?:" + fieldPattern + ")*\r\n$")
	digitPattern = regexp.MustCompile("^(?:0|[1-9][0-9]*)$")
	hostPattern  = regexp.MustCompile(`^[A-Za-z0-9\-.:\[\]_~]+$`)
)

const restPattern = "(?:[\x21\x22\x24\x26-\x7e]|%[0-9A-Fa-f]{2})*"

const fieldPattern = "[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e]*\r\n"

// reread reads a message by patterns and reports whether the contract allows it.
func reread(m string) (string, bool) {
	head := headPattern.FindStringSubmatch(m)
	if head == nil || len(head[0]) > wire.MaxHead {
		return "", false
	}
	rest := m[len(head[0]):]
	all := make(map[string][]string)
	for line := range strings.SplitSeq(strings.TrimSuffix(head[5], "\r\n"), "\r\n") {
		if line == "" {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		name = strings.ToLower(name)
		all[name] = append(all[name], value)
	}
	one := func(name string) (string, bool) {
		if len(all[name]) != 1 {
			return "", len(all[name]) == 0
		}
		return strings.TrimPrefix(all[name][0], " "), true
	}
	hostValue, ok1 := one("host")
	length, ok2 := one("content-length")
	coding, ok3 := one("transfer-encoding")
	expectation, ok4 := one("expect")
	hasLength, hasCoding := len(all["content-length"]) > 0, len(all["transfer-encoding"]) > 0
	old, hasHost := head[4] == "0", len(all["host"]) > 0
	if !ok1 || !ok2 || !ok3 || !ok4 || !hasHost && !old || hasHost && !hostPattern.MatchString(hostValue) || hasLength && hasCoding || hasCoding && old ||
		hasLength && !digitPattern.MatchString(length) || hasCoding && !strings.EqualFold(coding, "chunked") ||
		len(all["expect"]) > 0 && !strings.EqualFold(expectation, "100-continue") {
		return "", false
	}
	var body []byte
	switch {
	case hasLength:
		n, err := strconv.Atoi(length)
		if err != nil || n != len(rest) {
			return "", false
		}
		body = []byte(rest)
	case hasCoding:
		var ok bool
		if body, ok = dechunk(rest); !ok {
			return "", false
		}
	case rest != "":
		return "", false
	}
	// What package net/http takes out of the header.
	delete(all, "host")
	delete(all, "transfer-encoding")
	if head[3] != "" {
		hostValue = head[3] // RFC 9112, section 3.2.2
	}
	return reading(head[1], head[2], hostValue, all, body), true
}

func dechunk(s string) (body []byte, ok bool) {
	for {
		size := chunkPattern.FindStringSubmatch(s)
		if size == nil {
			return nil, false
		}
		s = s[len(size[0]):]
		n, err := strconv.ParseInt(size[1], 16, 64)
		if err != nil {
			return nil, false
		}
		if n == 0 {
			return body, tailPattern.MatchString(s)
		}
		if int64(len(s)) < n+2 || s[n:n+2] != "\r\n" {
			return nil, false
		}
		body = append(body, s[:n]...)
		s = s[n+2:]
	}
}

// fields writes a header of package net/http as reread keeps one.
func fields(h http.Header) map[string][]string {
	m := make(map[string][]string, len(h))
	for name, values := range h {
		name = strings.ToLower(name)
		m[name] = append(m[name], values...)
	}
	return m
}

// reading writes the meaning of a message in one form.
func reading(method, target, host string, all map[string][]string, body []byte) string {
	var lines []string
	for name, values := range all {
		if name == "trailer" || name == "connection" || name == "pragma" || name == "cache-control" {
			continue // package net/http takes these apart or adds to them
		}
		for i := range values {
			values[i] = strings.Trim(values[i], " \t")
		}
		lines = append(lines, fmt.Sprintf("%s: %q", name, values))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%q %q %q %s %q", method, target, host, strings.Join(lines, ", "), bytes.Clone(body))
}
