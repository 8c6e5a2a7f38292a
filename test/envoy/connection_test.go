package envoy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/test/world"
)

// A connection serves one request after the other, refused or not.
func TestConnectionsAreKept(t *testing.T) {
	w := open(t)
	conn := world.Dial(t, w.addr)
	r := bufio.NewReader(conn)
	for range 3 {
		for _, c := range []struct {
			request string
			status  int
		}{
			{request("GET", "/v2/pods", "key_research", ""), 200},
			{request("POST", "/v2/pods", "key_research", pod4090), 201},
			{request("POST", "/v2/pods", "key_research", world.Chunked(podH100), "Transfer-Encoding: chunked"), 403},
			{request("GET", "/v2/pods", "", ""), 401},
			{request("GET", "/v2/pods/nope1234", "key_research", ""), 404},
			{request("POST", "/v2/pods", "key_research", bodyOf(60000)), 422},
		} {
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			if a := world.Read(t, r, c.request); a.Status != c.status {
				t.Errorf("%.20q: status = %d, want %d: %s", c.request, a.Status, c.status, a.Body)
			}
		}
	}
	if n := w.stat(t, "http.callers.downstream_cx_total"); n != 1 {
		t.Errorf("%d connections of callers, want 1", n)
	}
	if n := w.stat(t, "cluster.tollgate.upstream_cx_total"); n != 1 {
		t.Errorf("%d connections to the ext_proc server, want 1", n)
	}
	if n := w.stat(t, "cluster.tollgate.upstream_rq_active"); n != 0 {
		t.Errorf("%d ext_proc streams are still open", n)
	}
}

// Requests sent at once on one connection are not mixed up, and one that is
// refused does not take the next one's bytes.
func TestPipelining(t *testing.T) {
	w := open(t)
	conn := world.Dial(t, w.addr)
	r := bufio.NewReader(conn)
	all := []string{
		request("POST", "/v2/pods", "", pod4090),
		request("POST", "/v2/pods", "key_research", strconv.Quote(request("GET", "/v2/account/ssh-keys", "key_platform", ""))),
		request("GET", "/v2/pods", "key_research", ""),
	}
	if _, err := io.WriteString(conn, strings.Join(all, "")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{401, 422, 200} {
		if a := world.Read(t, r, all[i]); a.Status != want {
			t.Errorf("request %d: status = %d, want %d: %s", i, a.Status, want, a.Body)
		}
	}
	if calls := w.platform.Calls(); len(calls) != 1 || calls[0].Path != "/v2/pods" {
		t.Errorf("calls = %+v, want the one list", calls)
	}
}

// client speaks HTTP/2 or HTTP/1.1 to Envoy, over connections it keeps.
func (w *way) client(t *testing.T, version int) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols), MaxIdleConnsPerHost: 64}
	tr.Protocols.SetHTTP1(version == 1)
	tr.Protocols.SetUnencryptedHTTP2(version == 2)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// do sends one request with a client of package http.
func (w *way) do(ctx context.Context, c *http.Client, method, target, key string, body io.Reader, trailer http.Header) (a answer, proto string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+w.addr+target, body)
	if err != nil {
		return a, "", err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Trailer = trailer
	res, err := c.Do(req)
	if err != nil {
		return a, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return answer{Status: res.StatusCode, Header: res.Header, Body: string(text)}, res.Proto, err
}

// HTTP/2 callers get what HTTP/1.1 callers get.
func TestHTTP2(t *testing.T) {
	w := open(t)
	c := w.client(t, 2)
	for _, tc := range []struct {
		name, method, target, key, body string
		trailer                         http.Header
		status, sent                    int
		want                            string
	}{
		{name: "list", method: "GET", target: "/v2/pods?bogus=1", key: "key_research", status: 200, sent: 1},
		{name: "create", method: "POST", target: "/v2/pods", key: "key_research", body: pod4090, status: 201, sent: 1},
		{
			name: "create, with trailers", method: "POST", target: "/v2/pods", key: "key_research", body: pod4090,
			trailer: http.Header{"X-Trailer": {"1"}, "Authorization": {"Bearer x"}}, status: 201, sent: 1,
		},
		{
			name: "trailers without a body", method: "GET", target: "/v2/pods", key: "key_research",
			trailer: http.Header{"X-Trailer": {"1"}}, status: 400, want: "the request has trailers, but no body",
		},
		{name: "trailers without a body and a key", method: "GET", target: "/v2/pods", trailer: http.Header{"X-Trailer": {"1"}}, status: 401},
		{name: "forbidden", method: "POST", target: "/v2/pods", key: "key_research", body: podH100, status: 403, want: "gpu_allow_list"},
		{name: "too large", method: "POST", target: "/v2/pods", key: "key_research", body: bodyOf(102401), status: 413, want: `"status":413`},
		{name: "larger than Envoy holds", method: "POST", target: "/v2/pods", key: "key_research", body: bodyOf(1 << 20), status: 413, want: `"status":413`},
		{name: "as large as may be", method: "POST", target: "/v2/pods", key: "key_research", body: bodyOf(102400), status: 422, want: "missing property"},
		{name: "no key", method: "GET", target: "/v2/pods", status: 401},
		{name: "unknown pod", method: "GET", target: "/v2/pods/nope1234", key: "key_research", status: 404, sent: 1},
		{name: "v1", method: "GET", target: "/v1/pods", key: "key_research", status: 200, sent: 1},
	} {
		for _, declared := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/length declared %v", tc.name, declared), func(t *testing.T) {
				var body io.Reader
				if tc.body != "" || tc.trailer != nil {
					body = strings.NewReader(tc.body)
					if !declared || tc.trailer != nil {
						body = io.MultiReader(body) // a reader of unknown length
					}
				}
				calls := w.sent(func() {
					a, proto, err := w.do(t.Context(), c, tc.method, tc.target, tc.key, body, tc.trailer)
					if err != nil {
						t.Fatal(err)
					}
					if proto != "HTTP/2.0" || a.Status != tc.status || !strings.Contains(a.Body, tc.want) {
						t.Errorf("answer = %s %d %s, want %d", proto, a.Status, a.Body, tc.status)
					}
				})
				checkCalls(t, calls)
				if len(calls) != tc.sent {
					t.Errorf("%d requests at the platform, want %d", len(calls), tc.sent)
				}
			})
		}
	}
}

// Many requests, one after the other and at once, are each answered rightly.
func TestManyRequests(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", version), func(t *testing.T) {
			w := open(t)
			c := w.client(t, version)
			one := func(ctx context.Context, i int) error {
				method, body, want := "GET", "", 200
				switch i % 4 {
				case 1:
					method, body, want = "POST", strings.Replace(pod4090, `"a"`, fmt.Sprintf(`"pod-%d"`, i), 1), 201
				case 2:
					method, body, want = "POST", podH100, 403
				case 3:
					method, body, want = "POST", `{"name":"a"}`, 422
				}
				var r io.Reader
				if body != "" {
					r = strings.NewReader(body)
				}
				a, _, err := w.do(ctx, c, method, "/v2/pods", "key_research", r, nil)
				if err != nil {
					return err
				}
				if a.Status != want {
					return fmt.Errorf("request %d: %d %s, want %d", i, a.Status, a.Body, want)
				}
				if want == 201 && !strings.Contains(a.Body, fmt.Sprintf(`"pod-%d"`, i)) {
					return fmt.Errorf("request %d got the answer to another: %s", i, a.Body)
				}
				return nil
			}
			for i := range 200 {
				if err := one(t.Context(), i); err != nil {
					t.Fatal(err)
				}
			}
			group, ctx := errgroup.WithContext(t.Context())
			for worker := range 32 {
				group.Go(func() error {
					for i := range 8 {
						if err := one(ctx, 1000+worker*8+i); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
			if n := len(w.platform.CallsTo("createPod")); n != 50+64 {
				t.Errorf("%d pods asked for, want %d", n, 50+64)
			}
			if n := w.stat(t, "cluster.tollgate.upstream_rq_active"); n != 0 {
				t.Errorf("%d ext_proc streams are still open", n)
			}
		})
	}
}

// Callers that leave in the middle leave nothing behind.
func TestCallersThatLeave(t *testing.T) {
	w := open(t)
	raw := request("POST", "/v2/pods", "key_research", pod4090)
	for _, part := range []int{10, len(raw) - len(pod4090), len(raw) - 1} {
		conn := world.Dial(t, w.addr)
		send := func() { _, _ = io.WriteString(conn, raw[:part]) }
		if part > 10 {
			w.gate.after(t, send) // the answer to the headers
		} else {
			send()
		}
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
	}
	if a := w.send(t, raw); a.Status != 201 {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
	if calls := w.platform.CallsTo("createPod"); len(calls) != 1 {
		t.Errorf("%d pods asked for, want 1", len(calls))
	}
	for _, e := range w.logs.Exchanges(t) {
		if e["outcome"] == "fault" {
			t.Errorf("event %v says the gateway was at fault", e)
		}
	}
}
