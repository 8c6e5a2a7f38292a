package policyinput

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "rewrite input.schema.json")

// full is an input without a member that is empty.
func full() *Input {
	n := Money(10)
	account := Account{
		Burn: 1, Day: 2, Week: 8, Month: 3, Quarter: 9, Total: 11, BurnLimit: &n, DayLimit: &n, WeekLimit: &n, MonthLimit: &n, QuarterLimit: &n, TotalLimit: &n,
		GPUs: 4, Pods: 5, Workers: 6, VolumeGB: 7,
	}
	return &Input{
		Request: Request{
			Operation: "createPod", Method: "POST", Path: "/v2/pods", Params: map[string]string{"id": "x"},
			Query: map[string]any{"q": "1"}, Body: map[string]any{"a": "b"}, Unknown: map[string]any{"u": "1"}, Dialect: "v2",
		},
		Caller: Caller{Org: "o", Team: "t", Key: "k", Roles: []string{"admin"}},
		Resource: Resource{
			Current: map[string]any{"b": "c"}, After: map[string]any{"c": "d"},
			Template: &Template{ID: "t", Own: true, Public: true, Record: map[string]any{"d": "e"}},
			Owner:    &Owner{Team: "t", Key: "k"},
		},
		Catalog: catalog.NewSnapshot(catalog.Lists{GPUs: []catalog.GPU{{ID: "g", Pool: "p"}, {ID: "h"}}, CPUs: []catalog.CPU{{ID: "c"}}}, catalog.Rates{}, time.Unix(1, 0)),
		Cost:    Cost{Known: true, Hourly: 1, PerGPU: 2, Run: 4, GPUs: 3, Basis: "b", Reason: "r", AsOf: time.Unix(1, 5).UTC()},
		Spend:   Spend{Known: true, Org: account, Team: account, Key: account},
		Time:    time.Unix(2, 7).UTC(),
	}
}

// The published schema is that of the description.
func TestSchemaIsCurrent(t *testing.T) {
	const file = "../input.schema.json"
	if *update {
		if err := os.WriteFile(file, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(Schema()), string(got)); diff != "" {
		t.Errorf("input.schema.json is stale, run go test ./policies/policyinput -update (-want +got):\n%s", diff)
	}
}

// The input of policies is of the schema, and has every member of it.
func TestDocumentsAreOfTheSchema(t *testing.T) {
	compiled, err := jsonschema.CompileString("input.json", string(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]*Input{
		"full":   full(),
		"sparse": {Request: Request{Operation: "listPods", Query: map[string]any{}, Params: map[string]string{}}, Time: time.Unix(1, 0)},
	} {
		d, err := in.Document()
		if err != nil {
			t.Fatal(err)
		}
		term, err := new(Converter).Term(d, everything)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal([]byte(term.String()), &doc); err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(doc); err != nil {
			t.Errorf("%s: the document is not of the schema: %#v", name, err)
		}
		if name == "full" {
			complete(t, "input", documentShape, doc)
		}
	}
}

// complete reports members that a document lacks.
func complete(t *testing.T, at string, s *shape, doc any) {
	t.Helper()
	given, _ := doc.(map[string]any)
	for _, m := range s.members {
		v, there := given[m.name]
		switch inner, _ := v.(map[string]any); {
		case !there:
			t.Errorf("%s.%s is described and absent", at, m.name)
		case m.inner != nil && m.schema == nil:
			complete(t, at+"."+m.name, m.inner, v)
		case m.inner != nil:
			for name, item := range inner {
				complete(t, at+"."+m.name+"."+name, m.inner, item)
			}
		}
	}
}

// A written record is read back, but for the price list.
func TestDecodedDocumentsAreReadBack(t *testing.T) {
	in := full()
	written, err := in.Decoded()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	var doc map[string]any
	if err := numbers.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	got, err := ParseRecorded(doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, got.Input, cmpopts.IgnoreFields(Input{}, "Catalog")); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/catalog/cpus", "/catalog/gpus", "/catalog/pools"}, got.Hidden); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
}
