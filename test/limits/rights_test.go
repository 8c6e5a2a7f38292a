package limits

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/archive"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// TestRightsOfAGateway runs a gateway as a user of Redis with the rights that the
// documentation names, through calls of both interfaces, reports and its end. What
// Redis refused it would have logged.
func TestRightsOfAGateway(t *testing.T) {
	addr := redistest.Start(t)
	admin := redistest.Client(t, addr)
	text := document(t)
	limiter := regexp.MustCompile("(?s)ACL SETUSER tollgate on >PASSWORD (.*?)```").FindStringSubmatch(text)
	rest := regexp.MustCompile(`(?m)^    (~tollgate:legacy.*)$`).FindStringSubmatch(text)
	if limiter == nil || rest == nil {
		t.Fatal("docs/ratelimits.md names no rights")
	}
	rule := []any{"ACL", "SETUSER", "tollgate", "on", ">secret"}
	for word := range strings.FieldsSeq(limiter[1] + " " + rest[1]) {
		rule = append(rule, word)
	}
	if err := admin.Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
	upstream := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential}))
	// The gateway ends first: it writes on the way out.
	t.Cleanup(func() {
		denied, err := admin.ACLLog(context.WithoutCancel(t.Context()), 100).Result()
		if err != nil {
			t.Errorf("ACL LOG: %v", err)
		}
		for _, d := range denied {
			t.Errorf("Redis refused for %s: %s", d.Reason, d.Object)
		}
	})
	file := configuration(upstream.URL, "{url: {env: REDIS_URL}}", "leased", "a {minute: 1000}")
	file = strings.Replace(file, "    keys:", "    budget: {gpus: 8}\n    keys:", 1)
	gateway, _ := serve(t, 0, file, "redis://tollgate:secret@"+addr)
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	t.Cleanup(client.CloseIdleConnections)
	for _, call := range []struct{ method, path, body string }{
		{"GET", "/v2/pods", ""},
		{"POST", "/v1/pods", `{"name":"c","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`},
		{"GET", "/v1/pods", ""},
		{"POST", "/v1/templates", `{"name":"t","imageName":"img:1"}`},
		{"GET", "/v1/templates", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), call.method, gateway+call.path, strings.NewReader(call.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret_a")
		if call.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode >= http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", call.method, call.path, res.StatusCode, body)
		}
	}
	explained := archive.New(redistest.As(t, addr, "tollgate", "secret"), "tollgate:decisions:", archive.DefaultConfig())
	if _, err := explained.List(t.Context(), "acme", archive.Range{}, func(json.RawMessage) bool { return true }); err != nil {
		t.Errorf("explanations: %v", err) // those of the calls come behind their answers
	}
}
