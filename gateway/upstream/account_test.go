package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// clientOf returns the client of a platform that answers with handle, for the one organisation acme.
func clientOf(t *testing.T, handle http.HandlerFunc) *upstream.Account {
	t.Helper()
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	client, err := upstream.New(upstream.Config{BaseURL: s.URL, Timeout: time.Minute, ConnectTimeout: time.Minute, MaxIdle: 1},
		map[string]upstream.Credential{"acme": upstream.NewCredential("pk-very-secret")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return upstream.NewAccount(client, api, "tollgate/test")
}

// The search for a lost resource reads one resource, or lists all resources of the kind.
func TestDeduplicatedKindsCanBeFound(t *testing.T) {
	t.Parallel()
	c := clientOf(t, http.NotFound)
	listed := make(map[operation.Kind]bool)
	for _, op := range c.Lists {
		row, _ := operation.Lookup(op.ID)
		listed[row.Kind] = true
	}
	for _, row := range operation.All() {
		if row.Deduplicated(map[string]any{"action": "start"}) && (c.Gets[row.Kind] == nil || !listed[row.Kind]) {
			t.Errorf("%s: single read %t, list %t, want both", row.ID, c.Gets[row.Kind] != nil, listed[row.Kind])
		}
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	const text = `{"paths":{}}`
	var got *http.Request
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = w.Write([]byte(text))
	})
	body, err := c.Description(t.Context())
	if err != nil || string(body) != text {
		t.Fatalf("%s (%v), want %s", body, err, text)
	}
	want := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"tollgate/test"}}
	if diff := cmp.Diff(want, got.Header); diff != "" || got.Method != http.MethodGet || got.RequestURI != "/v2/openapi.json" {
		t.Errorf("%s %s, want no credential; headers (-want +got):\n%s", got.Method, got.RequestURI, diff)
	}
}

// A description that is too long, is not there or does not come is an error.
func TestDescriptionFails(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" ", schema.MaxDescription)
	for name, tc := range map[string]struct {
		handle http.HandlerFunc
		want   error
		text   string
	}{
		"as long as may be": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(long)) }, nil, ""},
		"longer":            {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(long + " ")) }, upstream.ErrTooLong, ""},
		"absent":            {http.NotFound, upstream.ErrUnreachable, "GET /v2/openapi.json returned status 404"},
		"for callers alone": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, upstream.ErrUnreachable, "returned status 401"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/openapi.json" {
				t.Errorf("the redirection to %s was followed", r.URL)
			}
			http.Redirect(w, r, "/other", http.StatusFound)
		}, upstream.ErrUnreachable, "returned status 302"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
			_, _ = w.Write([]byte("{"))
		}, upstream.ErrUnreachable, ""},
		"dropped": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, upstream.ErrUnreachable, ""},
	} {
		body, err := clientOf(t, tc.handle).Description(t.Context())
		if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.text) || len(body) > schema.MaxDescription {
			t.Errorf("%s: %d bytes, %v, want %v with %q", name, len(body), err, tc.want, tc.text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	hangs := clientOf(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := hangs.Description(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a platform that does not answer: %v, want the end of the context", err)
	}
}

// A list that is absent or denied is empty if an older platform, or one key's permissions, can be the reason, and otherwise an error.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   operation.Kind
		status int
		known  bool
		fails  bool
	}{
		{operation.KindSecret, http.StatusForbidden, false, false},
		{operation.KindSecret, http.StatusNotFound, true, false},
		{operation.KindSandbox, http.StatusNotFound, false, false},
		{operation.KindSandbox, http.StatusNotFound, true, true},
		{operation.KindSandbox, http.StatusForbidden, false, true},
		{operation.KindSecret, http.StatusBadGateway, false, true},
	} {
		c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) })
		list, err := c.Records(t.Context(), "acme", func(k operation.Kind) bool { return k == tt.kind }, func(operation.Kind) bool { return tt.known })
		if (err != nil) != tt.fails || len(list) != 0 {
			t.Errorf("%+v: %v, %v", tt, list, err)
		}
	}
}
