package decisions

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/logfile"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// ask asks a row as an operator of all organisations. It returns the status, and the answer as JSON or the reason for the refusal.
func ask(t *testing.T, d *Decisions, pattern, query string) (status int, text string) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	s := adminapi.Principal{
		Roles: []adminapi.Role{adminapi.Operator}, Now: d.deps.Now(),
		Orgs: []adminapi.Tenant{{ID: "acme", Teams: []string{"research", "ops"}}, {ID: "globex", Teams: []string{"ml"}}},
	}
	for _, r := range d.Endpoints() {
		if r.Pattern != pattern {
			continue
		}
		answer, err := r.Invoke(t.Context(), s, values, nil)
		var out strings.Builder
		if write, isText := answer.(adminapi.Writer); err == nil && isText {
			err = write(&out)
		} else if err == nil {
			err = json.NewEncoder(&out).Encode(answer)
		}
		if status, reason := adminapi.StatusOf(err); status != 0 {
			return status, reason
		}
		return 200, out.String()
	}
	t.Fatalf("no row %s", pattern)
	return 0, ""
}

// configured are the organisations of tests.
func configured(now *time.Time) *view.Current {
	orgs := []settings.Org{{ID: "acme"}, {ID: "globex"}}
	v := &view.View{Config: &settings.Config{Orgs: orgs}, Orgs: map[string]*settings.Org{"acme": &orgs[0], "globex": &orgs[1]}}
	current := view.New(func() time.Time { return *now })
	current.Set(v)
	return current
}

func TestDecisionsAreListed(t *testing.T) {
	t.Parallel()
	server, now := miniredis.RunT(t), time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	d := counting(t, server, &now)
	d.deps.Chain = func() *filter.Chain { return new(filter.Chain) }
	for _, x := range []explain.Report{
		{DecisionID: "d1", Caller: explain.Caller{Org: "acme", Team: "research", Key: "ann"}, Time: now.Add(-2 * time.Hour)},
		{DecisionID: "d2", Caller: explain.Caller{Org: "globex", Team: "ml", Key: "bob"}, Verdict: explain.Refused, Time: now},
	} {
		x.Own = &explain.OwnAction{}
		d.History.AddOwn(&x)
	}
	const list, one = "GET /admin/decisions", "GET /admin/decisions/{id}"
	for _, tt := range []struct {
		pattern, query string
		status         int
		want, not      string
	}{
		{list, "", 200, `"d1"`, ""},
		{list, "org=acme", 200, `"d1"`, `"d2"`},
		{list, "limit=1", 200, `"d2"`, `"d1"`},
		{list, "team=research", 200, `"d1"`, `"d2"`},
		{list, "key=ann", 200, `"d1"`, `"d2"`},
		{list, "refused=true", 200, `"d2"`, `"d1"`},
		{list, "since=2026-11-22T15:04:05Z", 200, `"d2"`, `"d1"`},
		{list, "since=1h", 200, `"d2"`, `"d1"`},
		{list, "before=2026-11-22T15:04:05Z", 200, `"d1"`, `"d2"`},
		{list, "refused=2", 400, "refused", ""},
		{list, "since=-1h", 400, "since", ""},
		{list, "team=resarch", 404, `did you mean "research"?; known: ml, ops, research`, ""},
		{list, "org=globex&team=research", 404, `unknown team of globex "research"; known: ml`, ""},
		{list, "teem=research", 400, "teem", ""},
		{list, "limit=1&limit=2", 400, "must not be repeated", ""},
		{list, "limit=0", 400, "limit", ""},
		{list, "limit=many", 400, "limit", ""},
		{one, "id=d1", 200, `"decisionId":"d1"`, ""},
		{one, "id=d3", 404, "decision not found", ""},
	} {
		if status, text := ask(t, d, tt.pattern, tt.query); status != tt.status || !strings.Contains(text, tt.want) || tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s %s: %d %s, want %d with %q and without %q", tt.pattern, tt.query, status, text, tt.status, tt.want, tt.not)
		}
	}
	d.archive = &archiver{store: NewArchive(redistest.Once(t, server.Addr()), "t:", settings.DefaultArchive()), logger: slog.New(slog.DiscardHandler)}
	server.SetError("LOADING")
	if status, text := ask(t, d, list, "org=acme"); status != 200 || !strings.Contains(text, `"incomplete":"shared store unavailable`) || !strings.Contains(text, `"d1"`) {
		t.Errorf("a list without the store: %d %s", status, text)
	}
	if status, text := ask(t, d, one, "id=01KBDXV1G0000000000000000A"); status != 503 {
		t.Errorf("a decision without the store: %d %s, want 503", status, text)
	}
}

// Each decision is on one page of a list, although calls end in another order than they began in, and some began at the same time.
func TestPagesOfDecisions(t *testing.T) {
	t.Parallel()
	server, now := miniredis.RunT(t), time.Now().UTC()
	d := counting(t, server, &now)
	d.History = explain.NewHistory(1000, nil)
	d.archive = &archiver{store: NewArchive(redistest.Once(t, server.Addr()), "t:", settings.DefaultArchive()), logger: slog.New(slog.DiscardHandler)}
	const calls = 300
	var want []string
	for i := range calls {
		n := i * 7 % calls // in order of completion
		x := explain.Report{
			DecisionID: fmt.Sprintf("d%03d", n), Caller: explain.Caller{Org: "acme"}, Own: &explain.OwnAction{},
			Time: now.Add(time.Duration(n/3) * time.Second / 2).Add(-time.Hour),
		}
		want = append(want, fmt.Sprintf("d%03d", calls-1-i))
		if n%3 != 0 {
			d.History.AddOwn(&x)
		}
		if n%3 == 1 {
			continue
		}
		report, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		server.SetTime(now.Add(time.Duration(i)*time.Millisecond - time.Minute))
		if _, err := d.archive.store.Append(t.Context(), store.Line{List: "acme", ID: x.DecisionID, Text: report}); err != nil {
			t.Fatal(err)
		}
	}
	for _, byTime := range []bool{false, true} {
		var got []string
		for before := ""; ; {
			_, text := ask(t, d, "GET /admin/decisions", "org=acme&limit=7&before="+before)
			var page List
			if err := json.Unmarshal([]byte(text), &page); err != nil || len(got) > calls || page.Incomplete != "" {
				t.Fatalf("%d decisions, then %s (%v)", len(got), text, err)
			}
			for _, s := range page.Decisions {
				got = append(got, s.DecisionID)
			}
			if before = page.Next; before == "" {
				break
			}
			if byTime {
				before = page.Decisions[len(page.Decisions)-1].Time.Format(time.RFC3339Nano)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by the time of the last entry %t (-want +got):\n%s", byTime, diff)
		}
	}
}

// A list that read as many archived decisions as it may continues with those that it did not read.
func TestPagesOfManyDecisions(t *testing.T) {
	t.Parallel()
	server, now := miniredis.RunT(t), time.Now().UTC()
	d := counting(t, server, &now)
	d.archive = &archiver{store: NewArchive(redistest.Once(t, server.Addr()), "t:", settings.Archive{For: 24 * time.Hour, Max: 4 * mostRead}), logger: slog.New(slog.DiscardHandler)}
	var lines []store.Line
	for i := range 3 * mostRead {
		text := fmt.Sprintf(`{"decisionId":"d%d","time":%q,"operation":"old","caller":{"org":"acme"}}`, i, now.Add(time.Duration(i)*time.Second/10-time.Hour).Format(time.RFC3339Nano))
		if i >= 3 {
			text = strings.Replace(text, "old", "new", 1)
		}
		lines = append(lines, store.Line{List: "acme", ID: fmt.Sprint(i), Text: []byte(text)})
	}
	const atOnce = 50
	for i := 0; i < len(lines); i += atOnce {
		server.SetTime(now.Add(time.Duration(i+atOnce)*time.Second/10 - time.Hour))
		if _, err := d.archive.store.Append(t.Context(), lines[i:i+atOnce]...); err != nil {
			t.Fatal(err)
		}
	}
	pages, found := 0, 0
	for before := ""; pages == 0 || before != ""; pages++ {
		_, text := ask(t, d, "GET /admin/decisions", "org=acme&operation=old&before="+before)
		var page List
		if err := json.Unmarshal([]byte(text), &page); err != nil || pages > 5 || (page.Next == "") != (page.Incomplete == "") {
			t.Fatalf("page %d: %s (%v)", pages, text, err)
		}
		found += len(page.Decisions)
		before = page.Next
	}
	if found != 3 {
		t.Errorf("%d old decisions on %d pages, want 3", found, pages)
	}
}

func TestTheDecisionLogIsRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	d := counting(t, miniredis.RunT(t), &now)
	const log = "GET /admin/decisions/log"
	for query, want := range map[string]string{"org=acme": "409 decisions.file is not set", "org=acmee": `404 did you mean "acme"?; known: acme, globex`, "org=acme&since=yesterday": "400 since", "": "400 org: is required"} {
		code, part, _ := strings.Cut(want, " ")
		if status, text := ask(t, d, log, query); status != map[string]int{"400": 400, "404": 404, "409": 409}[code] || !strings.Contains(text, part) {
			t.Errorf("%q: %d %s, want %s", query, status, text, want)
		}
	}
	d.file = &logfile.File{Path: filepath.Join(t.TempDir(), "decisions.log")}
	w, err := logfile.Open(*d.file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{"decision_id":"old","timestamp":"2026-11-22T10:00:00Z","custom":{"org":"acme"}}`, `{"decision_id":"new","timestamp":"2026-11-22T15:30:00Z","custom":{"org":"acme"}}`,
		`{"decision_id":"other","timestamp":"2026-11-22T15:30:00Z","custom":{"org":"globex"}}`,
	} {
		if err := w.WriteLines([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if status, text := ask(t, d, log, "org=acme&since=2026-11-22T15:04:05Z"); status != 200 || !strings.Contains(text, `"new"`) || strings.Contains(text, `"old"`) || strings.Contains(text, `"other"`) {
		t.Errorf("since 15:04: %d %s, want the new event of acme", status, text)
	}
}

func TestPoliciesAreCounted(t *testing.T) {
	t.Parallel()
	server, now := miniredis.RunT(t), time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	d := counting(t, server, &now)
	hour := now.Add(-2 * time.Hour)
	for key, n := range map[CountKey]int64{
		{Hour: hour, Policy: "gpu_count", Verdict: "denies", Team: "ml"}: 2, {Hour: hour, Policy: "gpu_count", Verdict: "would deny", Team: "ops"}: 1,
		{Hour: hour.Add(time.Hour), Policy: "gpu_count", Verdict: "denies", Team: "ml"}: 3, {Hour: hour.Add(time.Hour), Policy: "price_ceiling", Verdict: "denies"}: 4,
	} {
		d.counter.verdicts.add("acme", key, n)
	}
	for query, want := range map[string]string{
		"org=acme":                               `{"policy":"gpu_count","verdict":"denies","team":"ml","calls":5}`,
		"org=acme&bucket=hour&since=90d":         `"hour":"2026-11-22T14:00:00Z"`,
		"org=acme&verdict=would+deny&team=ml":    `"counts":[]`,
		"org=acme&policy=price_ceiling":          `"calls":4`,
		"org=acme&verdict=no":                    "expected denies, warns, would deny, excepted or changes",
		"":                                       "org: is required",
		"org=acme&since=90d&policy=none":         `"from":"2026-10-23T16:00:00Z"`,
		"org=acme&since=2026-11-22T15:30:00Z":    `"gpu_count","verdict":"denies","team":"ml","calls":3`,
		"org=acme&team=dissolved&verdict=denies": `"counts":[]`,
	} {
		if status, text := ask(t, d, "GET /admin/policies/counts", query); !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", query, status, text, want)
		}
	}
	server.SetError("LOADING")
	if status, _ := ask(t, d, "GET /admin/policies/counts", "org=acme"); status != 503 {
		t.Errorf("without the store: %d, want 503", status)
	}
}

// A slow reader is told how many decisions it has missed.
func TestMissedDecisionsAreTold(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	e := newEvents(&out)
	for _, v := range []any{explain.Summary{DecisionID: "d1"}, missed{3}} {
		if err := e.send(v); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String(); !strings.HasPrefix(text, "event: decision\ndata: {\"decisionId\":\"d1\"") || !strings.HasSuffix(text, "\n\nevent: missed\ndata: {\"missed\":3}\n\n") {
		t.Errorf("the stream is %q", text)
	}
}
