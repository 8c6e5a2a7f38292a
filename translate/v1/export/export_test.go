package export_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v1/export"
)

const sample = `{
  "endpoints": [
    {"id": "e1", "name": "x", "templateId": "t1", "gpuTypeIds": ["NVIDIA L4", "NVIDIA A40"], "networkVolumeId": "v1",
     "networkVolumeIds": ["v1"], "idleTimeout": 17, "version": 4, "workersMax": 3, "env": {"A": "1"}},
    {"id": "e2", "templateId": "t1"},
    {"id": "e3", "templateId": "someone-elses"}
  ],
  "templates": [{"id": "t1", "readme": "how to"}, {"id": "t2", "readme": ""}, {"id": "t3"}],
  "pods": [
    {"id": "p1", "templateId": "t1", "gpuCount": 2, "machine": {"gpuTypeId": "NVIDIA L4"}},
    {"id": "p2", "templateId": null, "machine": null, "gpuCount": 1},
    {"id": "p3", "gpuTypeId": "NVIDIA A40", "gpuCount": 1, "machine": {}}
  ]
}`

func parse(t *testing.T, text string) *export.Export {
	t.Helper()
	e, err := export.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newStore() *storetest.MemoryStore {
	return storetest.NewMemoryStore(func() time.Time { return time.Unix(0, 0) })
}

// remembered lists all records of the account.
func remembered(t *testing.T, store translate.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kind := range export.Kinds() {
		values, err := store.List(t.Context(), "acme", kind)
		if err != nil {
			t.Fatal(err)
		}
		for id, value := range values {
			all[kind+" "+id] = string(value)
		}
	}
	return all
}

func TestImport(t *testing.T) {
	e, store := parse(t, sample), newStore()
	counts, err := e.Import(t.Context(), store, "acme")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"endpoint e1": `{"gpuTypeIds":["NVIDIA L4","NVIDIA A40"],"idleTimeout":17,"networkVolumeId":"v1","networkVolumeIds":["v1"],"templateId":"t1","version":4}`,
		"endpoint e2": `{"templateId":"t1"}`,
		"endpoint e3": `{"templateId":"someone-elses"}`,
		"template t1": `{"readme":"how to"}`,
		"pod p1":      `{"gpuCount":2,"gpuTypeId":"NVIDIA L4","templateId":"t1"}`,
		"pod p3":      `{"gpuCount":1,"gpuTypeId":"NVIDIA A40"}`,
	}
	got := remembered(t, store)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	wantCounts := map[string]export.Count{translate.KindEndpoint: {Added: 3}, translate.KindTemplate: {Added: 1}, translate.KindPod: {Added: 2}}
	if diff := cmp.Diff(wantCounts, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{translate.KindTemplate: 2, translate.KindPod: 1}, e.Empty); diff != "" {
		t.Errorf("empty (-want +got):\n%s", diff)
	}

	// A second time changes nothing.
	counts, err = parse(t, sample).Import(t.Context(), store, "acme")
	if err != nil {
		t.Fatal(err)
	}
	wantCounts = map[string]export.Count{translate.KindEndpoint: {Kept: 3}, translate.KindTemplate: {Kept: 1}, translate.KindPod: {Kept: 2}}
	if diff := cmp.Diff(wantCounts, counts); diff != "" {
		t.Errorf("counts of the second import (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, remembered(t, store)); diff != "" {
		t.Errorf("the second import changed (-before +after):\n%s", diff)
	}
}

// The gateway's own notes are younger than any export.
func TestImportAddsAndNeverReplaces(t *testing.T) {
	store := newStore()
	for key, value := range map[translate.Key]string{
		{Account: "acme", Kind: translate.KindPod, ID: "p1"}:      `{"gpuTypeId":"NVIDIA H200","injectedEnv":["PUBLIC_KEY"]}`,
		{Account: "acme", Kind: translate.KindTemplate, ID: "t1"}: `{"readme":"newer"}`,
		{Account: "acme", Kind: translate.KindEndpoint, ID: "e2"}: `null`,
	} {
		if err := store.Put(t.Context(), key, json.RawMessage(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := parse(t, sample).Import(t.Context(), store, "acme")
	if err != nil {
		t.Fatal(err)
	}
	got := remembered(t, store)
	for record, want := range map[string]string{
		"pod p1":      `{"gpuCount":2,"gpuTypeId":"NVIDIA H200","injectedEnv":["PUBLIC_KEY"],"templateId":"t1"}`,
		"template t1": `{"readme":"newer"}`,
		"endpoint e2": `{"templateId":"t1"}`,
	} {
		if got[record] != want {
			t.Errorf("%s = %s, want %s", record, got[record], want)
		}
	}
	if c := counts[translate.KindPod]; c != (export.Count{Added: 1, Completed: 1}) {
		t.Errorf("pods: %+v, want one added and one completed", c)
	}
}

func TestBadEntriesAreLeftOutAndLocated(t *testing.T) {
	e := parse(t, `{
"pods": [
  {"id": "p1", "templateId": "t1"},
  {"id": 7},
  "p3",
  {"templateId": "t1"},
  {"id": "p5",
   "gpuCount": "two"},
  {"id": "p6", "machine": {"gpuTypeId": 1}}, {"id": "p7", "machine": "m"},
  {"id": "p1", "templateId": "t2"}
],
"endpoints": [{"id": "e1", "gpuTypeIds": ["a", 1]}, {"id": "e2", "gpuTypeIds": "a"}, {"id": "e3", "version": 1.5}]
}`)
	var got []string
	for _, f := range e.Faults {
		got = append(got, f.Error())
	}
	want := []string{
		"4: pods[1].id: expected string",
		"5: pods[2]: expected object",
		"6: pods[3].id: expected an id",
		"7: pods[4].gpuCount: expected a whole number",
		"9: pods[5].machine.gpuTypeId: expected string",
		`10: pods[7].id: "p1" is at pods[0] already`,
		"12: endpoints[0].gpuTypeIds[1]: expected string",
		"12: endpoints[1].gpuTypeIds: expected array of strings",
		"12: endpoints[2].version: expected a whole number",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	store := newStore()
	if _, err := e.Import(t.Context(), store, "acme"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"pod p1": `{"templateId":"t1"}`}, remembered(t, store)); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoExport(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":          {"", "1: the text ends too soon"},
		"cut off":          {"{\"pods\": [\n{\"id\": \"p1\"},", "the text ends too soon"},
		"not JSON":         {"{\n\"pods\": [}", "2: "},
		"one list":         {`[{"id":"p1"}]`, "want an object"},
		"empty":            {`{}`, "want an object"},
		"another member":   {`{"pods": [], "volumes": []}`, `member "volumes"`},
		"a member twice":   {`{"pods": [], "pods": []}`, `member "pods"`},
		"not lists":        {`{"pods": {}}`, "want an object"},
		"more after it":    {`{"pods": []} {}`, "more text"},
		"an error of v1's": {`{"message": "Unauthorized"}`, `member "message"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := export.Parse([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q in it", err, tc.want)
			}
		})
	}
}

// failing is a store that is away.
type failing struct{ translate.Store }

var errAway = errors.New("away")

// Add implements translate.Store.
func (failing) Add(context.Context, translate.Key, json.RawMessage, time.Duration) (bool, error) {
	return false, errAway
}

func TestAStoreThatIsAwayEndsTheImport(t *testing.T) {
	_, err := parse(t, sample).Import(t.Context(), failing{newStore()}, "acme")
	if !errors.Is(err, errAway) || !strings.Contains(err.Error(), "endpoint e1") {
		t.Errorf("err = %v, want one that says at which record", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add(`{"pods":[{"id":"a"},null]}`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := export.Parse([]byte(text))
		if err != nil {
			return
		}
		store := newStore()
		if _, err := e.Import(t.Context(), store, "acme"); err != nil {
			t.Fatal(err)
		}
		before := remembered(t, store)
		counts, err := e.Import(t.Context(), store, "acme")
		if err != nil {
			t.Fatal(err)
		}
		for kind, c := range counts {
			if c.Added+c.Completed > 0 {
				t.Errorf("%s: %+v the second time, want all kept", kind, c)
			}
		}
		if diff := cmp.Diff(before, remembered(t, store)); diff != "" {
			t.Errorf("the second import changed (-before +after):\n%s", diff)
		}
	})
}

// The export that docs/migrate.md shows is one.
func TestTheExportOfTheManual(t *testing.T) {
	page, err := os.ReadFile("../../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/migrate.md shows no export")
	}
	e := parse(t, text)
	counts, err := e.Import(t.Context(), newStore(), "acme")
	if err != nil || len(e.Faults) > 0 {
		t.Fatalf("faults %v, %v; want none", e.Faults, err)
	}
	for _, kind := range export.Kinds() {
		if counts[kind].Added != 1 {
			t.Errorf("%s: %+v, want one added", kind, counts[kind])
		}
	}
}
