package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecodeListed: objects are read by name.
func TestDecodeListed(t *testing.T) {
	v, err := DecodeNodes([]byte(` {"b":{"c":null,"ca":"x","esc":"\u0041\"","on":true,"off":false},"a":[{"n":-1.50},[],"s"],"d":{}}`))
	o, ok := v.(*Node)
	if err != nil || !ok {
		t.Fatalf("%#v, %v", v, err)
	}
	inner, _ := o.Get("b")
	b := inner.(*Node)
	for name, want := range map[string]any{"c": nil, "ca": "x", "esc": `A"`, "on": true, "off": false} {
		text, _ := want.(string)
		if got, ok := b.Get(name); got != want || !ok || b.Text(name) != text {
			t.Errorf("%s is %v, %v, as text %q; want %v", name, got, ok, b.Text(name), want)
		}
	}
	for _, name := range []string{"", "e", "b", "d", `c":null,"ca`, `":"`, strings.Repeat("x", 200)} {
		if got, ok := b.Get(name); got != nil || ok || b.Text(name) != "" {
			t.Errorf("%q is %v, %v, want none", name, got, ok)
		}
	}
	for name, want := range map[string]string{"n": "-1.50", "zero": "0", "s": "", "l": "", "none": ""} {
		if got := node(t, `{"n":-1.50,"zero":0,"s":"1","l":[1]}`).Number(name); string(got) != want {
			t.Errorf("number %s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string][]string{"l": {"a", `"`}, "e": {}, "s": {}, "none": {}} {
		if diff := cmp.Diff(want, node(t, `{"l":["a",1,null,["b"],"\""],"e":[],"s":"x"}`).AppendTexts([]string{}, name)); diff != "" {
			t.Errorf("texts of %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"b", "a", "d"}, o.AppendNames(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{
		"b": map[string]any{"c": nil, "ca": "x", "esc": `A"`, "on": true, "off": false},
		"a": []any{map[string]any{"n": json.Number("-1.50")}, []any{}, "s"}, "d": map[string]any{},
	}, listed(v)); diff != "" {
		t.Error(diff)
	}
}

func node(t *testing.T, text string) *Node {
	t.Helper()
	v, err := DecodeNodes([]byte(text))
	n, ok := v.(*Node)
	if err != nil || !ok {
		t.Fatalf("%#v, %v", v, err)
	}
	return n
}

// TestDecodeListedLarge: names given twice are found among many, and an answer of what
// separates values does not ask for more room than others.
func TestDecodeListedLarge(t *testing.T) {
	var wide strings.Builder
	for i := range 5 * fewNames {
		fmt.Fprintf(&wide, `"%d":0,`, i)
	}
	if v, err := DecodeNodes([]byte("{" + wide.String() + `"x":1}`)); err != nil || len(v.(*Node).Map()) != 5*fewNames+1 {
		t.Errorf("a large object: %v, %v", v, err)
	}
	if _, err := DecodeNodes([]byte("{" + wide.String() + `"7":1}`)); err == nil {
		t.Error("a name given twice in a large object is accepted")
	}
	commas := []byte(`{"a":"` + strings.Repeat(",[{", 1<<20) + `"}`)
	if n := likelyValues(commas); n > len(commas)/4 {
		t.Errorf("room for %d values in %d bytes", n, len(commas))
	}
}

// heldListed holds DecodeListed against DecodeLenient.
func heldListed(t *testing.T, text string) {
	t.Helper()
	want, refused := DecodeLenient([]byte(text))
	got, err := DecodeNodes([]byte(text))
	if fmt.Sprint(err) != fmt.Sprint(refused) {
		t.Fatalf("%.200q: %v; DecodeLenient says %v", text, err, refused)
	}
	if diff := cmp.Diff(want, listed(got)); err == nil && diff != "" {
		t.Fatalf("%.200q (-decoder +listed):\n%s", text, diff)
	}
	if doc, err := DecodeNodes([]byte(text)); err == nil {
		heldLookups(t, want, doc)
	}
}

// heldLookups compares lookups by name with the members there are.
func heldLookups(t *testing.T, want, got any) {
	t.Helper()
	switch got := got.(type) {
	case []any:
		for i, item := range want.([]any) {
			heldLookups(t, item, got[i])
		}
	case *Node:
		members := want.(map[string]any)
		for name, value := range members {
			have, ok := got.Get(name)
			if !ok {
				t.Fatalf("no member %q of %v", name, members)
			}
			if _, there := members[name+"x"]; !there && got.member(name+"x") != 0 {
				t.Fatalf("a member %q of %v", name+"x", members)
			}
			heldLookups(t, value, have)
		}
	case map[string]any: // a document of names with escapes
	default:
		if got != want {
			t.Fatalf("found %v, want %v", got, want)
		}
	}
}

// TestSlots: the names of a pod's members have slots of their own, and names that have not
// are found all the same.
func TestSlots(t *testing.T) {
	used := map[int]string{}
	for name := range strings.FieldsSeq("id name status actions image args cmd entrypoint disk env ports registry mounts gpu cpu cloud dataCenterId " +
		"cudaVersion ssh template cost locked globalNetworking runtime createdAt startedAt cluster") {
		if other := used[slot(name)]; other != "" {
			t.Errorf("%s and %s have one slot", name, other)
		}
		used[slot(name)] = name
	}
	heldListed(t, `{"axxb":1,"ayyb":{"axxb":2,"c":[3,{"ayyb":4}],"azzb":5,"d":6,"e":7,"f":8},"azzb":9,"":10,"g":11,"awwb":12}`)
}

// FuzzDecodeListed: it accepts what decoder accepts, and makes the same of it.
func FuzzDecodeListed(f *testing.F) {
	for _, seed := range buildSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { heldListed(t, text) })
}
