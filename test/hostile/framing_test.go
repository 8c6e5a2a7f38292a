package hostile

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smuggled is the request that a stranger wants the platform to see. Nothing behind a
// framing fault may ever be read as a request.
const smuggled = "DELETE /v2/pods/victim HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer " + k1 + "\r\n\r\n"

// head is a request for a pod without its framing headers and the empty line.
const head = "POST /v2/pods HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer " + k1 + "\r\nContent-Type: application/json\r\n"

const chunked = head + "Transfer-Encoding: chunked\r\n\r\n"

// TestFraming is the contract for messages whose ends could be read in two
// ways: one refusal, the end of the connection, nothing for the platform.
func TestFraming(t *testing.T) {
	t.Parallel()
	s := open(t)
	get := "GET /v2/pods HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer " + k1 + "\r\n"
	lines := func(framing string) string { return head + framing + "\r\n\r\n0\r\n\r\n" }
	for name, tc := range map[string]struct {
		raw    string
		status int
	}{
		// Two lengths in one message.
		"length then coding":         {lines("Content-Length: 4\r\nTransfer-Encoding: chunked"), 400},
		"coding then length":         {lines("Transfer-Encoding: chunked\r\nContent-Length: 4"), 400},
		"length zero and coding":     {lines("Content-Length: 0\r\nTransfer-Encoding: chunked"), 400},
		"two equal lengths":          {head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
		"two lengths":                {head + "Content-Length: 2\r\nContent-Length: 44\r\n\r\n{}", 400},
		"two lengths, other case":    {head + "Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}", 400},
		"list of lengths":            {head + "Content-Length: 2, 2\r\n\r\n{}", 400},
		"length with a plus":         {head + "Content-Length: +2\r\n\r\n{}", 400},
		"negative length":            {head + "Content-Length: -2\r\n\r\n{}", 400},
		"hexadecimal length":         {head + "Content-Length: 0x10\r\n\r\n{}", 400},
		"empty length":               {head + "Content-Length:\r\n\r\n{}", 400},
		"length in two words":        {head + "Content-Length: 1 0\r\n\r\n{}", 400},
		"length among spaces":        {head + "Content-Length:  2 \r\n\r\n{}", 400},
		"length beyond all integers": {head + "Content-Length: 99999999999999999999\r\n\r\n{}", 400},

		// Transfer codings other than one "chunked".
		"other coding":             {lines("Transfer-Encoding: xchunked"), 400},
		"gzip, chunked":            {lines("Transfer-Encoding: gzip, chunked"), 400},
		"identity":                 {lines("Transfer-Encoding: identity"), 400},
		"chunked, identity":        {lines("Transfer-Encoding: Chunked, identity"), 400},
		"coding twice":             {lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
		"coding and identity":      {lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"), 400},
		"coding with parameter":    {lines("Transfer-Encoding: chunked;ext=v"), 400},
		"coding behind VT":         {lines("Transfer-Encoding:\x0bchunked"), 400},
		"coding behind two spaces": {lines("Transfer-Encoding:  chunked"), 400},
		"coding before a space":    {lines("Transfer-Encoding: chunked "), 400},
		"coding on the next line":  {lines("Transfer-Encoding:\r\n chunked"), 400},
		"space before the colon":   {lines("Transfer-Encoding : chunked"), 400},
		"quoted coding":            {lines(`Transfer-Encoding: "chunked"`), 400},

		// Chunks.
		"bare LF behind a size":    {chunked + "2\n{}\r\n0\r\n\r\n", 400},
		"bare LF in an extension":  {chunked + "2;a\n{}\r\n0\r\n\r\n", 400},
		"size with 0x":             {chunked + "0x2\r\n{}\r\n0\r\n\r\n", 400},
		"size with a sign":         {chunked + "+2\r\n{}\r\n0\r\n\r\n", 400},
		"size with an underscore":  {chunked + "0_2\r\n{}\r\n0\r\n\r\n", 400},
		"size that overflows":      {chunked + "10000000000000002\r\n{}\r\n0\r\n\r\n", 400},
		"size with a space behind": {chunked + "2 \r\n{}\r\n0\r\n\r\n", 400},
		"more data than said":      {chunked + "1\r\n{}\r\n0\r\n\r\n", 400},
		"no CR behind the data":    {chunked + "2\r\n{}\n0\r\n\r\n", 400},
		"extension flood":          {chunked + strings.Repeat("1;"+strings.Repeat("a", 64<<10)+"\r\n{\r\n", 4), 400},
		"bare LF in the trailer":   {chunked + "2\r\n{}\r\n0\r\nA: b\n\r\n", 400},
		"request as trailer":       {chunked + "2\r\n{}\r\n0\r\n" + smuggled, 400},

		// Lines.
		"bare LF behind a header": {get + "A: b\nC: d\r\n\r\n", 400},
		"bare LF only":            {strings.ReplaceAll(get+"\r\n", "\r\n", "\n"), 400},
		"folded line":             {get + "A: b\r\n c\r\n\r\n", 400},
		"folded with a tab":       {get + "A: b\r\n\tc\r\n\r\n", 400},
		"line begins with space":  {get + " A: b\r\n\r\n", 400},
		"space and colon":         {get + "A : b\r\n\r\n", 400},
		"empty name":              {"GET /v2/pods HTTP/1.1\r\nHost: gw\r\n: x\r\nAuthorization: Bearer " + k1 + "\r\n\r\n", 400},
		"no colon":                {get + "A\r\n\r\n", 400},
		"NUL in a value":          {get + "A: b\x00c\r\n\r\n", 400},
		"bare CR in a value":      {get + "A: b\rc\r\n\r\n", 400},
		"0xFF in a value":         {get + "A: \xff\r\n\r\n", 400},
		"two leading empty lines": {"\r\n\r\n" + get + "\r\n", 400},
		"half an empty line":      {"\r" + get + "\r\n", 400},
		"HTTP/1.2":                {strings.Replace(get, "HTTP/1.1", "HTTP/1.2", 1) + "\r\n", 505},
		"HTTP/1.0, coding":        {strings.Replace(lines("Transfer-Encoding: chunked"), "HTTP/1.1", "HTTP/1.0", 1), 400},
		"HTTP/1.0, both":          {strings.Replace(lines("Content-Length: 5\r\nTransfer-Encoding: chunked"), "HTTP/1.1", "HTTP/1.0", 1), 400},
		"HTTP/0.9":                {"GET /v2/pods\r\n\r\n", 400},
		"HTTP/2 without TLS":      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},

		// Targets and hosts.
		"absolute form":     {strings.Replace(get, "/v2/pods", "http://u:p@evil/v2/pods", 1) + "\r\n", 400},
		"authority form":    {"CONNECT evil:443 HTTP/1.1\r\nHost: evil:443\r\n\r\n", 400},
		"asterisk form":     {strings.Replace(get, "/v2/pods", "*", 1) + "\r\n", 400},
		"fragment":          {strings.Replace(get, "/v2/pods", "/v2/pods#/x", 1) + "\r\n", 400},
		"host with a path":  {strings.Replace(get, "Host: gw", "Host: gw/?", 1) + "\r\n", 400},
		"host with a hash":  {strings.Replace(get, "Host: gw", "Host: gw#", 1) + "\r\n", 400},
		"host with a user":  {strings.Replace(get, "Host: gw", "Host: a@b", 1) + "\r\n", 400},
		"two hosts":         {strings.Replace(get, "Host: gw", "Host: gw\r\nHost: gw", 1) + "\r\n", 400},
		"no host":           {strings.Replace(get, "Host: gw\r\n", "", 1) + "\r\n", 400},
		"other expectation": {head + "Expect: y 100-continue\r\nContent-Length: 2\r\n\r\n{}", 417},

		// Size.
		"1 MB header":    {get + "A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", 431},
		"10,000 headers": {get + strings.Repeat("A: b\r\n", 10_000) + "\r\n", 431},
		"200 KB target":  {strings.Replace(get, "/v2/pods", "/v2/pods?"+strings.Repeat("a", 200<<10), 1) + "\r\n", 431},
	} {
		got := s.talk(t, tc.raw+smuggled)
		if len(got) != 1 {
			t.Errorf("%s: %d answers, want one: %+v", name, len(got), got)
			continue
		}
		if a := got[0]; a.Status != tc.status || a.Header.Get("Content-Type") != "application/problem+json" || !a.Last {
			t.Errorf("%s: answer %+v, want %d as problem details, the last", name, a, tc.status)
		}
		s.recorder.untouched(t)
	}
}

// TestOldVersion: HTTP/1.0 is served, and its connection ends with the response, whatever its client asks for and sends behind it.
func TestOldVersion(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, tc := range map[string]struct {
		raw    string
		status int
		calls  int
	}{
		"no Host":        {"GET /v2/pods HTTP/1.0\r\nAuthorization: Bearer " + k1 + "\r\n\r\n", 200, 1},
		"keep-alive":     {"GET /v2/pods HTTP/1.0\r\nHost: gw\r\nConnection: keep-alive\r\nAuthorization: Bearer " + k1 + "\r\n\r\n", 200, 1},
		"a body":         {strings.Replace(request("POST", "/v2/pods", k1, allowed), "HTTP/1.1", "HTTP/1.0", 1), 201, 1},
		"a missing body": {strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + "\r\n", 400, 0},
		"websocket": {"GET /v2/pods HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer " + k1 + "\r\n\r\n", 200, 1},
	} {
		got := s.talk(t, tc.raw+smuggled)
		if len(got) != 1 || got[0].Status != tc.status || !got[0].Last || got[0].Header.Get("Transfer-Encoding") != "" {
			t.Errorf("%s: answers %+v, want one %d, the last", name, got, tc.status)
		}
		if calls := s.recorder.take(); len(calls) != tc.calls || tc.calls > 0 && strings.Contains(calls[0].Target, "victim") {
			t.Errorf("%s: the platform got %+v, want %d calls", name, calls, tc.calls)
		}
	}
}

// TestAbsoluteForm: the platform sees the path of the target alone, on its own host.
func TestAbsoluteForm(t *testing.T) {
	t.Parallel()
	s := open(t)
	for target, want := range map[string]string{
		"http://evil.test/v2/pods":              "/v2/pods",
		"HTTPS://evil.test:80/v2/pods?bogus=1":  "/v2/pods",
		"http://evil.test//v2/pods":             "404",
		"http://evil.test/v2/../v2/pods":        "400",
		"http://evil.test":                      "404",
		"http://evil.test?a=/v2/pods":           "404",
		"http://evil.test/http://gw/v2/pods":    "404",
		"http://victim/v2/pods/%2e%2e/account":  "400",
		"http://user@evil.test/v2/pods":         "400",
		"http://evil.test:80@other.test/v2/pod": "400",
	} {
		a := s.ask(t, request("GET", target, k1, ""))
		calls := s.recorder.take()
		switch {
		case len(calls) == 1 && calls[0].Target == want && calls[0].Host == s.recorder.addr && a.Status == 200:
		case len(calls) == 0 && strconv.Itoa(a.Status) == want:
		default:
			t.Errorf("%s: answer %d and calls %+v, want %s", target, a.Status, calls, want)
		}
	}
}

// TestUpgrades: no tunnel, whoever asks for it, and no second request behind an
// offer that was turned down.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	s := open(t)
	websocket := request("GET", "/v2/pods", k1, "", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: x")
	if got := s.talk(t, websocket+smuggled); len(got) != 1 || got[0].Status != 400 {
		t.Errorf("websocket: answers %+v, want one 400", got)
	}
	s.recorder.untouched(t)

	for _, other := range []string{"h2c", "TLS/1.0", "foo/2, bar"} {
		offer := request("GET", "/v2/pods", k1, "", "Connection: Upgrade, HTTP2-Settings", "Upgrade: "+other, "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")
		if a := s.ask(t, offer); a.Status != 200 {
			t.Errorf("%s: answer %d, want the offer ignored", other, a.Status)
		}
		calls := s.recorder.take()
		if len(calls) != 1 || calls[0].Header.Get("Upgrade") != "" || calls[0].Header.Get("Http2-Settings") != "" {
			t.Errorf("%s: the platform got %+v, want one plain request", other, calls)
		}
	}
}

// TestPipelining: each request on a connection stands for itself.
func TestPipelining(t *testing.T) {
	t.Parallel()
	s := open(t)
	anonymous := request("GET", "/v2/pods", "", "", "Connection: close")
	got := s.talk(t, request("GET", "/v2/pods", k1, "")+request("GET", "/v2/pods", "nobody_at_all", "")+
		request("POST", "/v2/pods", k2, allowed)+anonymous)
	var statuses []int
	for _, a := range got {
		statuses = append(statuses, a.Status)
	}
	if diff := cmp.Diff([]int{200, 401, 201, 401}, statuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	var keys []string
	for _, c := range s.recorder.take() {
		keys = append(keys, c.Header.Get("Authorization"))
	}
	if diff := cmp.Diff([]string{"Bearer " + pk, "Bearer pk-globex-" + canary}, keys); diff != "" {
		t.Errorf("credentials at the platform (-want +got):\n%s", diff)
	}
}

// TestTrailers: bytes behind a body change nothing.
func TestTrailers(t *testing.T) {
	t.Parallel()
	s := open(t)
	body := "3e\r\n" + allowed + "\r\n0\r\nAuthorization: Bearer " + k2 + "\r\nContent-Length: 5\r\nX-Request-Id: trailer\r\n\r\n"
	got := s.talk(t, head+"Trailer: Authorization, X-Request-Id\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+body)
	if len(got) != 1 || got[0].Status != 201 {
		t.Fatalf("answers %+v, want one 201", got)
	}
	calls := s.recorder.take()
	if len(calls) != 1 {
		t.Fatalf("the platform got %d calls, want 1", len(calls))
	}
	c := calls[0]
	if c.Header.Get("Authorization") != "Bearer "+pk || c.Header.Get("X-Request-Id") == "trailer" || len(c.Trailer) != 0 || c.Header.Get("Trailer") != "" {
		t.Errorf("the platform got %v with trailers %v", c.Header, c.Trailer)
	}
}

// TestEarlyAnswers: when the answer comes before the body, the rest of the
// connection is not read as requests.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, tc := range map[string]struct {
		raw    string
		status int
	}{
		"too large, announced":     {head + "Content-Length: 102401\r\n\r\n" + smuggled, 413},
		"too large, not announced": {chunked + "19001\r\n" + strings.Repeat(" ", 0x19001) + "\r\n" + smuggled, 413},
		"expecting, too large":     {head + "Expect: 100-continue\r\nContent-Length: 102401\r\n\r\n" + smuggled, 413},
		"expecting, much too much": {head + "Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n" + smuggled, 413},
	} {
		conn := s.dial(t)
		// The other side may have answered and left before it has all.
		_, _ = conn.Write([]byte(tc.raw))
		_ = conn.CloseWrite()
		got := answers(t, conn)
		_ = conn.Close()
		if len(got) != 1 || got[0].Status != tc.status || !got[0].Last {
			t.Errorf("%s: answers %+v, want one %d, the last", name, got, tc.status)
		}
	}
	s.recorder.untouched(t)
}
