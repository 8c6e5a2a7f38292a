package wire_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// verdict is the result of a stream: the messages that passed whole, and the
// status of the refusal behind them, 0 without one.
type verdict struct {
	Messages []string
	Status   int
	// Rest is what passed of a message that did not end.
	Rest string
}

// judge scans a stream in pieces of at most size bytes.
func judge(stream string, size int) verdict {
	var v verdict
	start, end := 0, 0
	s := wire.NewScanner()
	for b := []byte(stream); len(b) > 0; {
		n, ended, fault := s.Scan(b[:min(size, len(b))])
		b = b[n:]
		end += n
		if fault != nil {
			v.Status = fault.Status
			break
		}
		if ended {
			v.Messages = append(v.Messages, stream[start:end])
			start = end
		}
	}
	v.Rest = stream[start:end]
	return v
}

// post is a head that lacks its last header lines and the empty line.
const post = "POST /v2/pods HTTP/1.1\r\nHost: gw\r\n"

// one is a whole request, two of which make a pipeline.
const one = "GET /v2/pods?a=%20b HTTP/1.1\r\nHost: gw:8080\r\nAccept:*/*\r\nX-Empty:\r\nX-Tab:\ta\tb \r\n\r\n"

func TestWhatHasOneReadingPasses(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string][]string{
		"no body":                {one},
		"two in a row":           {one, one},
		"length":                 {post + "Content-Length: 4\r\n\r\n0\r\n\n", one},
		"length without a space": {post + "content-length:10\r\n\r\n0123456789"},
		"length zero":            {post + "Content-Length: 0\r\n\r\n", one},
		"chunks":                 {post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nA\r\n\r\n0\r\n\r\nGET\r\n0\r\n\r\n", one},
		"coding in capitals":     {post + "TRANSFER-ENCODING: Chunked\r\n\r\n0\r\n\r\n"},
		"chunk extension":        {post + "Transfer-Encoding: chunked\r\n\r\n2;a=\"b c\"\r\n{}\r\n0;x\r\n\r\n"},
		"chunk sizes with zeros": {post + "Transfer-Encoding: chunked\r\n\r\n00000002\r\n{}\r\n000\r\n\r\n"},
		"trailers":               {post + "Transfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: Bearer x\r\nContent-Length: 5\r\n\r\n", one},
		"expectation":            {post + "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n{}"},
		"address as host":        {"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"},
		"long names":             {"GET / HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding-X: gzip\r\nContent-Length-X: a\r\nHosts: x\r\nX-Expect: y\r\n\r\n"},
		"largest head": {
			"GET / HTTP/1.1\r\nHost: gw\r\nA: " + strings.Repeat("a", wire.MaxHead-len("GET / HTTP/1.1\r\nHost: gw\r\nA: \r\n\r\n")) + "\r\n\r\n", one,
		},
		"HTTP/1.0":                    {"GET /v2/pods HTTP/1.0\r\n\r\n"},
		"HTTP/1.0 with a host":        {"GET / HTTP/1.0\r\nHost: gw\r\nConnection: keep-alive\r\n\r\n", one},
		"HTTP/1.0 with a length":      {"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"},
		"absolute form":               {"GET http://gw:8080/v2/pods?a=%20b HTTP/1.1\r\nHost: gw\r\n\r\n", one},
		"absolute form in other case": {"GET HTTPs://gw.example.test/ HTTP/1.1\r\nHost: gw\r\n\r\n"},
		"absolute form without path":  {"GET http://gw HTTP/1.1\r\nHost: gw\r\n\r\n", "GET http://gw:80?a=b HTTP/1.0\r\n\r\n"},
		"most fields":                 {"GET / HTTP/1.1\r\nHost: gw\r\n" + strings.Repeat("A: a\r\n", 99) + "\r\n", one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 2, 3, 7, 64, 1 << 20} {
				got := judge(strings.Join(messages, ""), size)
				if diff := cmp.Diff(verdict{Messages: messages}, got); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

// refusals lists streams whose last message must not pass, with the status of
// the refusal. test/hostile plays the same kinds against the whole gateway.
var refusals = map[string]struct {
	stream string
	status int
}{
	// The request line.
	"space first":                  {" " + one, 400},
	"bare LF first":                {"\n" + one, 400},
	"method of other characters":   {"G(T / HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"endless method":               {strings.Repeat("A", 40) + " / HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"tab behind the method":        {"GET\t/ HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"two spaces behind the method": {"GET  / HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"two spaces before version":    {"GET /  HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"space behind the version":     {"GET / HTTP/1.1 \r\nHost: gw\r\n\r\n", 400},
	"absolute form with a user":    {"GET http://u:p@evil/v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form with a name":    {"GET http://u@evil/v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form, other scheme":  {"GET ftp://gw/v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form, one slash":     {"GET http:/gw/v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form without host":   {"GET http:///v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form, two ports":     {"GET http://gw:80:80/v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form, IPv6":          {"GET http://[::1]/v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form, fragment":      {"GET http://gw#/v2/pods HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"absolute form, no Host":       {"GET http://gw/ HTTP/1.1\r\n\r\n", 400},
	"authority form":               {"CONNECT evil:443 HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"asterisk form":                {"OPTIONS * HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"no target":                    {"GET HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"fragment":                     {"GET /v2/pods#/x HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"NUL in the target":            {"GET /v2/p\x00ds HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"non-ASCII target":             {"GET /v2/p\u00f6ds HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"half an escape":               {"GET /v2/pods%2 HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"escape of no digits":          {"GET /v2/pods?a=%zz HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"escape at the end":            {"GET /v2/pods% HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"CR in the target":             {"GET /v2/pods\r HTTP/1.1\r\nHost: gw\r\n\r\n", 400},
	"version 0.9":                  {"GET /v2/pods\r\n", 400},
	"version 1.0, coding":          {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	"version 1.0, both":            {"POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	"version 1.0, two hosts":       {"GET / HTTP/1.0\r\nHost: gw\r\nHost: gw\r\n\r\n", 400},
	"version 1.2":                  {"GET / HTTP/1.2\r\nHost: gw\r\n\r\n", 505},
	"version 2.0":                  {"GET / HTTP/2.0\r\nHost: gw\r\n\r\n", 505},
	"version 1.11":                 {"GET / HTTP/1.11\r\nHost: gw\r\n\r\n", 400},
	"HTTP/2 preface":               {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
	"version in small letters":     {"GET / http/1.1\r\nHost: gw\r\n\r\n", 400},
	"bare LF behind the version":   {"GET / HTTP/1.1\nHost: gw\r\n\r\n", 400},
	"TLS hello":                    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},

	// Header lines.
	"bare LF behind a header":  {"GET / HTTP/1.1\r\nHost: gw\nA: b\r\n\r\n", 400},
	"bare LF as empty line":    {"GET / HTTP/1.1\r\nHost: gw\r\n\n", 400},
	"bare CR in a value":       {"GET / HTTP/1.1\r\nHost: gw\r\nA: b\rc\r\n\r\n", 400},
	"CR CR LF":                 {"GET / HTTP/1.1\r\nHost: gw\r\n\r\r\n", 400},
	"folded line":              {"GET / HTTP/1.1\r\nHost: gw\r\nA: b\r\n c\r\n\r\n", 400},
	"folded first line":        {"GET / HTTP/1.1\r\n Host: gw\r\n\r\n", 400},
	"folded with a tab":        {"GET / HTTP/1.1\r\nHost: gw\r\n\tA: b\r\n\r\n", 400},
	"space before the colon":   {"GET / HTTP/1.1\r\nHost: gw\r\nA : b\r\n\r\n", 400},
	"no colon":                 {"GET / HTTP/1.1\r\nHost: gw\r\nA\r\n\r\n", 400},
	"no name":                  {"GET / HTTP/1.1\r\nHost: gw\r\n: b\r\n\r\n", 400},
	"name of other characters": {"GET / HTTP/1.1\r\nHost: gw\r\nA(b): c\r\n\r\n", 400},
	"NUL in a name":            {"GET / HTTP/1.1\r\nHost: gw\r\nA\x00: c\r\n\r\n", 400},
	"high byte in a name":      {"GET / HTTP/1.1\r\nHost: gw\r\nA\xff: c\r\n\r\n", 400},
	"NUL in a value":           {"GET / HTTP/1.1\r\nHost: gw\r\nA: b\x00c\r\n\r\n", 400},
	"high byte in a value":     {"GET / HTTP/1.1\r\nHost: gw\r\nA: b\xff\r\n\r\n", 400},
	"DEL in a value":           {"GET / HTTP/1.1\r\nHost: gw\r\nA: b\x7f\r\n\r\n", 400},
	"vertical tab in a value":  {"GET / HTTP/1.1\r\nHost: gw\r\nA: b\x0bc\r\n\r\n", 400},
	"one byte too long":        {"GET / HTTP/1.1\r\nHost: gw\r\nA: " + strings.Repeat("a", wire.MaxHead-len("GET / HTTP/1.1\r\nHost: gw\r\nA: \r\n\r\n")+1) + "\r\n\r\n", 431},
	"endless target":           {"GET /" + strings.Repeat("a", 200<<10), 431},
	"endless value":            {"GET / HTTP/1.1\r\nHost: gw\r\nA: " + strings.Repeat("a", 1<<20), 431},
	"endless name":             {"GET / HTTP/1.1\r\nHost: gw\r\n" + strings.Repeat("a", 1<<20), 431},
	"one field too many":       {"GET / HTTP/1.1\r\nHost: gw\r\n" + strings.Repeat("A: a\r\n", 100) + "\r\n", 431},

	// Host.
	"no host":            {"GET / HTTP/1.1\r\n\r\n", 400},
	"empty host":         {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
	"blank host":         {"GET / HTTP/1.1\r\nHost:  \r\n\r\n", 400},
	"two hosts":          {"GET / HTTP/1.1\r\nHost: gw\r\nhost: gw\r\n\r\n", 400},
	"host with a path":   {"GET / HTTP/1.1\r\nHost: gw/?\r\n\r\n", 400},
	"host with a hash":   {"GET / HTTP/1.1\r\nHost: gw#\r\n\r\n", 400},
	"host with a user":   {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
	"host with a space":  {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	"list of hosts":      {"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400},
	"host, space behind": {"GET / HTTP/1.1\r\nHost: gw \r\n\r\n", 400},

	// Content-Length.
	"two equal lengths":       {post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
	"two lengths":             {post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
	"list of lengths":         {post + "Content-Length: 2, 2\r\n\r\n{}", 400},
	"length with a sign":      {post + "Content-Length: +2\r\n\r\n{}", 400},
	"negative length":         {post + "Content-Length: -2\r\n\r\n{}", 400},
	"hexadecimal length":      {post + "Content-Length: 0x10\r\n\r\n", 400},
	"empty length":            {post + "Content-Length:\r\n\r\n", 400},
	"length with a gap":       {post + "Content-Length: 1 0\r\n\r\n", 400},
	"length among spaces":     {post + "Content-Length:  5 \r\n\r\n", 400},
	"length behind a tab":     {post + "Content-Length:\t5\r\n\r\n", 400},
	"length beyond all bound": {post + "Content-Length: 99999999999999999999\r\n\r\n", 400},
	"length with a zero":      {post + "Content-Length: 02\r\n\r\n{}", 400},
	"fractional length":       {post + "Content-Length: 2.0\r\n\r\n{}", 400},

	// Transfer-Encoding.
	"length before coding":      {post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + one, 400},
	"coding before length":      {post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + one, 400},
	"length zero and coding":    {post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	"coding twice":              {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	"coding listed twice":       {post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400},
	"other coding":              {post + "Transfer-Encoding: xchunked\r\n\r\n", 400},
	"coding with another":       {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
	"identity":                  {post + "Transfer-Encoding: identity\r\n\r\n", 400},
	"coding then identity":      {post + "Transfer-Encoding: Chunked, identity\r\n\r\n", 400},
	"empty coding":              {post + "Transfer-Encoding:\r\n\r\n", 400},
	"coding with a parameter":   {post + "Transfer-Encoding: chunked;ext=v\r\n\r\n", 400},
	"vertical tab before it":    {post + "Transfer-Encoding:\x0bchunked\r\n\r\n", 400},
	"tab before it":             {post + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", 400},
	"two spaces before it":      {post + "Transfer-Encoding:  chunked\r\n\r\n0\r\n\r\n", 400},
	"space behind it":           {post + "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n", 400},
	"quoted coding":             {post + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 400},
	"folded coding":             {post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
	"coding, space and colon":   {post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
	"long s in the coding word": {post + "Transfer-Encoding: chun\u212aed\r\n\r\n0\r\n\r\n", 400},

	// Expect.
	"other expectation":  {post + "Expect: y 100-continue\r\nContent-Length: 2\r\n\r\n{}", 417},
	"two expectations":   {post + "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", 417},
	"empty expectation":  {post + "Expect:\r\nContent-Length: 2\r\n\r\n{}", 417},
	"expectation listed": {post + "Expect: 100-continue, 100-continue\r\nContent-Length: 2\r\n\r\n{}", 417},
}

// chunkFaults lists bodies that break off with a fault, behind a good head.
var chunkFaults = map[string]string{
	"bare LF behind a size":    "2\n{}\r\n0\r\n\r\n",
	"bare LF in an extension":  "2;a\n{}\r\n0\r\n\r\n",
	"bare CR in an extension":  "2;a\rb\r\n{}\r\n0\r\n\r\n",
	"size with 0x":             "0x2\r\n{}\r\n0\r\n\r\n",
	"size with a sign":         "+2\r\n{}\r\n0\r\n\r\n",
	"negative size":            "-2\r\n{}\r\n0\r\n\r\n",
	"size with an underscore":  "0_2\r\n{}\r\n0\r\n\r\n",
	"size with a space before": " 2\r\n{}\r\n0\r\n\r\n",
	"size with a space behind": "2 \r\n{}\r\n0\r\n\r\n",
	"empty size":               "\r\n{}\r\n0\r\n\r\n",
	"no size but an extension": ";a\r\n{}\r\n0\r\n\r\n",
	"nine digits":              "000000002\r\n{}\r\n0\r\n\r\n",
	"size that overflows":      "ffffffffffffffff2\r\n{}\r\n0\r\n\r\n",
	"data longer than said":    "2\r\n{} \r\n0\r\n\r\n",
	"data shorter than said":   "3\r\n{}\r\n0\r\n\r\n",
	"bare LF behind the data":  "2\r\n{}\n0\r\n\r\n",
	"bare CR behind the data":  "2\r\n{}\r0\r\n\r\n",
	"extension flood":          "1;" + strings.Repeat("a", 64<<10) + "\r\n{",
	"many extensions":          strings.Repeat("1;aaaaaaaaaaaaaaaa\r\n \r\n", 200),
	"bare LF in the trailer":   "0\r\nA: b\n\r\n",
	"bare LF as its end":       "0\r\n\n",
	"folded trailer":           "0\r\nA: b\r\n c\r\n\r\n",
	"trailer without a name":   "0\r\n: b\r\n\r\n",
	"trailer without a colon":  "0\r\nGET / HTTP/1.1\r\n\r\n",
	"trailer with a NUL":       "0\r\nA: \x00\r\n\r\n",
	"trailer flood":            "0\r\nA: " + strings.Repeat("a", 1<<20),
	"many trailers":            "0\r\n" + strings.Repeat("A: a\r\n", 1000) + "\r\n",
}

const chunked = post + "Transfer-Encoding: chunked\r\n\r\n"

func TestWhatHasTwoReadingsDoesNotPass(t *testing.T) {
	t.Parallel()
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 2, 3, 7, 64, 1 << 21} {
				alone := judge(tc.stream, size)
				if alone.Status != tc.status || len(alone.Messages) != 0 {
					t.Errorf("in pieces of %d: status %d with %d messages passed, want %d with none", size, alone.Status, len(alone.Messages), tc.status)
				}
				if !strings.HasPrefix(tc.stream, alone.Rest) || strings.Contains(alone.Rest, "\n\n") || strings.HasSuffix(alone.Rest, "\r\n\r\n") {
					t.Errorf("in pieces of %d: passed %.80q, want a part of the head without its end", size, alone.Rest)
				}
				behind := judge(one+tc.stream, size)
				if behind.Status != tc.status || len(behind.Messages) != 1 {
					t.Errorf("behind a good one, in pieces of %d: status %d with %d messages passed, want %d with 1", size, behind.Status, len(behind.Messages), tc.status)
				}
			}
		})
	}
}

func TestBrokenChunksDoNotPass(t *testing.T) {
	t.Parallel()
	for name, body := range chunkFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 2, 5, 1 << 21} {
				got := judge(chunked+body, size)
				if got.Status/100 != 4 || len(got.Messages) != 0 {
					t.Errorf("in pieces of %d: status %d with %d messages passed, want 4xx with none", size, got.Status, len(got.Messages))
				}
				if len(got.Rest) > len(chunked)+4<<10 {
					t.Errorf("in pieces of %d: %d bytes passed before the fault was seen", size, len(got.Rest))
				}
			}
		})
	}
}

// Every single byte is tried at every place of a request where it would be
// read as part of a token, so that no class of bytes has a hole.
func TestEveryByteEverywhere(t *testing.T) {
	t.Parallel()
	const tchar = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	printable := func(c byte) bool { return c >= ' ' && c <= '~' }
	for name, tc := range map[string]struct {
		before, behind string
		passes         func(c byte) bool
	}{
		"method": {"G", "T / HTTP/1.1\r\nHost: gw\r\n\r\n", func(c byte) bool { return strings.IndexByte(tchar, c) >= 0 }},
		"target": {"GET /", "a HTTP/1.1\r\nHost: gw\r\n\r\n", func(c byte) bool { return printable(c) && c != ' ' && c != '#' && c != '%' }},
		"host": {"GET / HTTP/1.1\r\nHost: a", "b\r\n\r\n", func(c byte) bool {
			return strings.IndexByte("-.:[]_~", c) >= 0 || strings.IndexByte(tchar, c) >= 15
		}},
		"name":    {"GET / HTTP/1.1\r\nHost: gw\r\nA", "B: c\r\n\r\n", func(c byte) bool { return c == ':' || strings.IndexByte(tchar, c) >= 0 }},
		"value":   {"GET / HTTP/1.1\r\nHost: gw\r\nA: b", "c\r\n\r\n", func(c byte) bool { return c == '\t' || printable(c) }},
		"length":  {post + "Content-Length: ", "\r\n\r\n", func(c byte) bool { return c >= '0' && c <= '9' }},
		"version": {"GET / HTTP/1.", "\r\nHost: gw\r\n\r\n", func(c byte) bool { return c == '0' || c == '1' }},
		"chunk size": {chunked, "\r\n", func(c byte) bool {
			return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for c := range 256 {
				got := judge(tc.before+string([]byte{byte(c)})+tc.behind, 1<<10)
				if judged := got.Status == 0; judged != tc.passes(byte(c)) {
					t.Errorf("byte %s: passed %t, want %t", strconv.QuoteToASCII(string([]byte{byte(c)})), judged, tc.passes(byte(c)))
				}
			}
		})
	}
}
