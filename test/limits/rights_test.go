package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestRightsOfAGateway runs a gateway as a user of Redis with the rights that the
// documentation names, through calls of both interfaces, reports and its end. What
// Redis refused it would have logged.
func TestRightsOfAGateway(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		server := redistest.Run(t)
		client := granted(t, false, server)
		useRights(t, "redis://tollgate:secret@"+server.Addr(), nil)
		explained := decisions.NewArchive(client, "tollgate:decisions:", settings.DefaultArchive())
		if _, err := explained.List(t.Context(), "acme", decisions.Range{}, func(json.RawMessage, time.Time) bool { return true }); err != nil {
			t.Errorf("explanations: %v", err) // those of the calls come behind their answers
		}
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.ClusterShards(t, 3)
		granted(t, true, slices.Concat(c.Masters, c.Replicas)...)
		from := c.Of("{acme}")
		useRights(t, c.URL("tollgate:secret@"), func(call func()) {
			c.Move("{acme}", from, (from+1)%3, call)
			c.Failover((from + 2) % 3)
		})
	})
}

// granted gives user tollgate the rights that the documentation names, and fails the test if a server refuses
// that user anything. It returns a client of the last server.
func granted(t *testing.T, cluster bool, servers ...*redistest.Server) (client redistest.Conn) {
	t.Helper()
	text := document(t)
	rules := []*regexp.Regexp{
		regexp.MustCompile("(?s)ACL SETUSER tollgate on >PASSWORD (.*?)```"), regexp.MustCompile(`(?m)^    (~tollgate:legacy.*)$`),
	}
	if cluster {
		rules = append(rules, regexp.MustCompile(`(?m)^    (\+cluster.*)$`))
	}
	rule := []any{"ACL", "SETUSER", "tollgate", "on", ">secret"}
	for _, part := range rules {
		m := part.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("docs/ratelimits.md has no rights like %s", part)
		}
		for word := range strings.FieldsSeq(m[1]) {
			rule = append(rule, word)
		}
	}
	for _, server := range servers {
		admin := redistest.Client(t, server.Addr())
		if err := admin.Do(t.Context(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
		// The gateway ends first: it writes on the way out.
		t.Cleanup(func() {
			denied, err := admin.ACLLog(context.WithoutCancel(t.Context()), 100).Result()
			if err != nil && !cluster { // a node of a cluster was killed
				t.Errorf("ACL LOG: %v", err)
			}
			for _, d := range denied {
				t.Errorf("Redis refused for %s: %s", d.Reason, d.Object)
			}
		})
		client = redistest.As(t, server.Addr(), "tollgate", "secret")
	}
	return client
}

// useRights makes calls to a gateway. Between them changes, unless nil, makes one call at each of its steps.
func useRights(t *testing.T, redisURL string, changes func(call func())) {
	t.Helper()
	upstream := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential}))
	file := configuration(upstream.URL, "{url: {env: REDIS_URL}}", "leased", "a {minute: 1000}")
	file = strings.Replace(file, "    keys:", "    budget: {gpus: 8}\n    keys:", 1)
	gateway, _ := serve(t, 0, file, redisURL)
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	t.Cleanup(client.CloseIdleConnections)
	call := func(method, path, body string) (status int, answer []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, gateway+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret_a")
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ = io.ReadAll(res.Body)
		_ = res.Body.Close()
		return res.StatusCode, answer
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v2/pods", ""},
		{"POST", "/v1/pods", `{"name":"c","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`},
		{"GET", "/v1/pods", ""},
		{"POST", "/v1/templates", `{"name":"t","imageName":"img:1"}`},
		{"GET", "/v1/templates", ""},
	} {
		if status, answer := call(c.method, c.path, c.body); status >= http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, answer)
		}
	}
	if changes == nil {
		return
	}
	n := 0
	changes(func() {
		n++
		call("GET", "/v2/pods", "")
		call("POST", "/v1/templates", fmt.Sprintf(`{"name":"t-%d","imageName":"img:1"}`, n))
	})
	world.Until(t, "the gateway follows", func() bool {
		n++
		status, _ := call("POST", "/v1/templates", fmt.Sprintf(`{"name":"t-%d","imageName":"img:1"}`, n))
		return status < http.StatusBadRequest
	})
}
