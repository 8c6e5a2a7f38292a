package contract

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// manners are common to all operations: how they refuse bodies that are too large, unknown
// callers, callers without access, methods, bodies that are no JSON, members that are unknown,
// resources that are unknown, too many calls.
func manners(t *testing.T, c *client) {
	t.Helper()
	large := strings.Repeat(" ", 102_401)
	for _, id := range c.api.ids() {
		op := c.api.operation(t, id)
		if id == "getOpenAPI" {
			c.with("").want(t, http.StatusRequestEntityTooLarge, id, large)
			continue
		}
		c.with("").want(t, http.StatusUnauthorized, id, "")
		c.with("no-such-key").want(t, http.StatusUnauthorized, id, "")
		c.with("").want(t, http.StatusRequestEntityTooLarge, id, large)
		if c.denied != "" {
			c.with(c.denied).want(t, http.StatusForbidden, id, "{}")
		}
		if op.hasBody {
			c.want(t, http.StatusBadRequest, id, "{")
			c.want(t, http.StatusBadRequest, id, `{"a":1,"a":2}`)
			c.want(t, http.StatusUnprocessableEntity, id, "[]")
			unknown := http.StatusUnprocessableEntity
			if id == "createSandbox" { // alone refuses unknown members with 400
				unknown = http.StatusBadRequest
			}
			a := c.want(t, unknown, id, `{"bogus":1}`)
			if errs := a.list("errors"); len(errs) == 0 || !slices.ContainsFunc(errs, func(e any) bool {
				s, _ := e.(string)
				return strings.HasPrefix(s, "$") && strings.Contains(s, "bogus")
			}) {
				t.Errorf("%s: a 422 says where and what, got %s", id, a.body)
			}
		} else if op.hasParameter() {
			c.want(t, http.StatusNotFound, id, "")
		}
	}
	methods(t, c)
	t.Run("too many calls", func(t *testing.T) { tooMany(t, c) })
}

// methods asks every path for methods that it does not have.
func methods(t *testing.T, c *client) {
	t.Helper()
	for _, id := range c.api.ids() {
		op := c.api.operation(t, id)
		a := c.raw(t, http.MethodTrace, c.url+op.fill(nil), c.key, nil)
		if a.status == http.StatusMethodNotAllowed {
			c.note(id, a.status)
			c.api.check(t, op, a)
		}
		if allow := a.header.Get("Allow"); a.status != http.StatusMethodNotAllowed || !slices.Contains(strings.Split(allow, ", "), op.method) {
			t.Errorf("TRACE %s: got %d, Allow %q; want 405 and the methods there are", op.path, a.status, allow)
		}
	}
	for _, path := range []string{"/v2/pods/", "/v2//pods", "/v2/nothing", "/v2/pods/a/b/c"} {
		if a := c.raw(t, http.MethodGet, c.url+path, c.key, nil); a.status != http.StatusNotFound {
			t.Errorf("GET %s: got %d, want 404", path, a.status)
		}
	}
}

func tooMany(t *testing.T, c *client) {
	t.Helper()
	c.needsEmulator(t)
	limited := c.with(limitedKey)
	limited.want(t, http.StatusOK, "listPods", "")
	for _, id := range c.api.ids() {
		if id == "getOpenAPI" {
			continue
		}
		a := limited.want(t, http.StatusTooManyRequests, id, "")
		if after := a.header.Get("Retry-After"); after == "" || strings.Trim(after, "0123456789") != "" {
			t.Errorf("%s: Retry-After %q is no number of seconds", id, after)
		}
	}
}
