package graphql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that moves when something sleeps.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{now: time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

// script is a v2 that answers each operation from its own list, the last answer
// again and again, and records its requests. Lines are
// "operation status body"; a body "@name" is a file of testdata/fixtures.
type script struct {
	mu      sync.Mutex
	answers map[string][]*translate.Response
	calls   []*translate.Request
}

func newScript(tb testing.TB, lines string) *script {
	tb.Helper()
	s := &script{answers: map[string][]*translate.Response{}}
	for line := range strings.SplitSeq(lines, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		operation, rest, _ := strings.Cut(line, " ")
		code, text, _ := strings.Cut(rest, " ")
		status, err := strconv.Atoi(code)
		if err != nil {
			tb.Fatalf("script line %q: %v", line, err)
		}
		r := &translate.Response{Status: status, Header: http.Header{}}
		if status == http.StatusTooManyRequests {
			r.Header.Set("Retry-After", "1")
		}
		r.Body = fixture(tb, text)
		s.answers[operation] = append(s.answers[operation], r)
	}
	return s
}

func fixture(tb testing.TB, text string) any {
	tb.Helper()
	if text == "" {
		return nil
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		raw, err := os.ReadFile(filepath.Join("testdata", "fixtures", name+".json"))
		if err != nil {
			tb.Fatal(err)
		}
		text = string(raw)
	}
	return decode(tb, text)
}

// decode reads JSON the way the gateway does, numbers kept as written.
func decode(tb testing.TB, text string) any {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return v
}

func (s *script) Call(_ context.Context, r *translate.Request) (*translate.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r)
	list := s.answers[r.Operation]
	if len(list) == 0 {
		return &translate.Response{Status: 404, Body: map[string]any{"detail": r.Operation + " is not scripted"}}, nil
	}
	if len(list) > 1 {
		s.answers[r.Operation] = list[1:]
	}
	if list[0].Status == 0 && strings.HasPrefix(r.Operation, "create") {
		return nil, &translate.UnfinishedError{Noun: "resource"}
	}
	if list[0].Status == 0 {
		return nil, fmt.Errorf("read reply: %w", translate.ErrAmbiguous)
	}
	if r.Read { // as the gateway reads it
		return &translate.Response{Status: list[0].Status, Header: list[0].Header, Body: storetest.Recorded(list[0].Body), Kind: list[0].Kind}, nil
	}
	return list[0], nil
}

// lines shows the calls one per line: operation, id, query, body with sorted
// members.
func (s *script) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, len(s.calls))
	for i, r := range s.calls {
		out[i] = show(r)
	}
	return out
}

func show(r *translate.Request) string {
	parts := []string{r.Operation}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		parts = append(parts, r.Params[name])
	}
	if len(r.Query) > 0 {
		q := make([]string, 0, len(r.Query))
		for _, name := range slices.Sorted(maps.Keys(r.Query)) {
			q = append(q, name+"="+strings.Join(r.Query[name], ";"))
		}
		parts = append(parts, "?"+strings.Join(q, "&"))
	}
	if r.Body != nil {
		raw, err := json.Marshal(r.Body)
		if err != nil {
			raw = []byte(err.Error())
		}
		parts = append(parts, string(raw))
	}
	for name, at := range map[string]time.Time{"stop": r.StopAt, "terminate": r.TerminateAt} {
		if !at.IsZero() {
			parts = append(parts, name+" "+at.UTC().Format(time.RFC3339))
		}
	}
	return strings.Join(parts, " ")
}

// count tells how often an operation was called.
func (s *script) count(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.calls {
		if r.Operation == operation {
			n++
		}
	}
	return n
}

// rig is an API with its clock and store.
type rig struct {
	api   *graphql.API
	clock *clock
	store *storetest.MemoryStore
}

func newRig(tb testing.TB, edit ...func(*graphql.Config)) *rig {
	tb.Helper()
	cfg := graphql.DefaultConfig()
	cfg.Legacy.Brand = "Acme"
	for _, e := range edit {
		e(&cfg)
	}
	c := newClock()
	r := &rig{clock: c, store: storetest.NewMemoryStore(c.Now)}
	api, err := graphql.New(cfg, translate.Deps{Now: c.Now, Sleep: c.Sleep, Store: r.store})
	if err != nil {
		tb.Fatal(err)
	}
	r.api = api
	return r
}

const account = "acct-1"

// ask sends a document with variables.
func (r *rig) ask(tb testing.TB, v2 translate.Caller, document, variables string) *translate.Outgoing {
	tb.Helper()
	body := map[string]any{"query": document}
	if variables != "" {
		body["variables"] = decode(tb, variables)
	}
	return r.api.Serve(tb.Context(), &translate.Incoming{Account: account, Body: body, HasBody: true}, v2)
}

// answer is a decoded GraphQL answer.
type answer struct {
	Data   map[string]any `json:"data"`
	Errors []struct {
		Message    string         `json:"message"`
		Path       []any          `json:"path"`
		Extensions map[string]any `json:"extensions"`
	} `json:"errors"`
}

func read(tb testing.TB, out *translate.Outgoing) answer {
	tb.Helper()
	var a answer
	if err := json.Unmarshal(out.Body, &a); err != nil {
		tb.Fatalf("%v in %s", err, out.Body)
	}
	return a
}

// sections reads a golden file.
func sections(tb testing.TB, file string) map[string]string {
	tb.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	parts := map[string]string{}
	for _, f := range a.Files {
		parts[f.Name] = string(f.Data)
	}
	return parts
}

// lenient decodes JSON, nil when it is none.
func lenient(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}
