package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
)

// reference is what encoding/json writes.
func reference(v any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), err
}

// strange are values v2 does not have where it is read.
func strange() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{
		nil, "", "a<b>&\"\\\n\u2028ä", true, json.Number("-1"), json.Number("2.5e3"), json.Number("1e999"), "EXITED", "ERROR", "TERMINATED",
		"2026-11-20T12:00:00.1234Z", "NVIDIA L4", "SECURE", "US-TX-3",
		[]any{},
		[]any{"a", nil, json.Number("1")},
		map[string]any{},
		map[string]any{"id": "cpu5c", "count": json.Number("2"), "vcpuCount": json.Number("7.9"), "b\"": "c", "a": nil},
	})
}

// bend puts strange values into an object and its members.
func bend(t *rapid.T, members map[string]any) {
	for _, name := range append(slices.Sorted(maps.Keys(members)), "cpu", "gpu", "mounts", "runtime") {
		inner, isObject := members[name].(map[string]any)
		switch n := rapid.IntRange(0, 9).Draw(t, name); {
		case n == 0:
			members[name] = strange().Draw(t, "strange")
		case n == 1:
			delete(members, name)
		case isObject:
			bend(t, inner)
		}
	}
}

// TestPodsAreWrittenAsEncodingJSONDoes: pods write themselves, in the order and
// to the byte a map of the same members has.
func TestPodsAreWrittenAsEncodingJSONDoes(t *testing.T) {
	r := &request{api: newGate(t, DefaultConfig()).api, in: &translate.Incoming{Account: "a"}}
	rapid.Check(t, func(rt *rapid.T) {
		pod := fixture(rapid.SampledFrom([]string{"pod", "newPod", "cpuPod", "exitedPod"}).Draw(rt, "pod"))
		bend(rt, pod.(map[string]any))
		view := podView{gpus: newGPUCatalog(translate.Items(fixture("gpus"), "gpus")), machine: rapid.Bool().Draw(rt, "machine")}
		if rapid.Bool().Draw(rt, "included") {
			view.volume, view.template = networkVolume(fixture("volume")), map[string]any{"id": "t1"}
		}
		shown := r.pod(pod, view)
		if rapid.Bool().Draw(rt, "worker") {
			worker := translate.Items(fixture("workers"), "workers")[0]
			bend(rt, worker.(map[string]any))
			shown = r.worker(worker, "e1", view.gpus)
		}
		got, err := translate.AppendJSON(nil, shown)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := reference(mustJSON(string(got)))
		if string(got) != want || err != nil {
			rt.Fatalf("written\n%s\nwant\n%s, %v", got, want, err)
		}
	})
}

func TestObjectWriter(t *testing.T) {
	w := &objectWriter{}
	w.begin()
	w.texts("a", nil)
	w.texts("b", []string{"x", "\n<"})
	w.text("c", "{")
	w.object("d")
	w.end()
	w.object("e")
	w.whole("f", -1)
	w.end()
	w.flag("g", true)
	w.value("h", nil)
	w.number("i", "0.5")
	w.number("j", "-1e3")
	w.end()
	if want := `{"a":[],"b":["x","\n<"],"c":"{","d":{},"e":{"f":-1},"g":true,"h":null,"i":0.5,"j":-1e3}`; string(w.buf) != want || w.err != nil {
		t.Errorf("wrote %s, %v, want %s", w.buf, w.err, want)
	}
	w.value("k", math.NaN())
	if w.err == nil {
		t.Error("NaN was written")
	}
}

// unwritable ends as it says when it is written.
type unwritable func() error

func (f unwritable) AppendTo([]byte) ([]byte, error) { return nil, f() }

func TestWhatCannotBeWrittenIsA500(t *testing.T) {
	for name, body := range map[string]unwritable{
		"error": func() error { return errors.New("no") },
		"panic": func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			api := newGate(t, DefaultConfig()).api
			api.byID["getPod"].serve = func(context.Context, *request) (*reply, error) { return ok([]any{"a", body}), nil }
			out := api.Serve(t.Context(), "getPod", nil, nil)
			want := `{"error":"` + textBroken + `","message":"` + textBroken + `","status":500}`
			if out.Status != 500 || string(out.Body) != want || out.ContentType != "application/json" {
				t.Errorf("answered %d %s %s, want 500 and %s", out.Status, out.ContentType, out.Body, want)
			}
		})
	}
}

// TestListsOfRecords: a list is the same whether its pods are maps or Records.
func TestListsOfRecords(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var pods []any
		for range rapid.IntRange(0, 3).Draw(rt, "pods") {
			pod := fixture(rapid.SampledFrom([]string{"pod", "newPod", "cpuPod", "exitedPod"}).Draw(rt, "pod"))
			bend(rt, pod.(map[string]any))
			pods = append(pods, pod)
		}
		in := &translate.Incoming{Account: "acme", Query: url.Values{}}
		for _, q := range []string{"includeMachine=true", "computeType=GPU", "desiredStatus=RUNNING", "name=n", "gpuTypeId=NVIDIA L4"} {
			if rapid.IntRange(0, 3).Draw(rt, q) == 0 {
				name, value, _ := strings.Cut(q, "=")
				in.Query.Set(name, value)
			}
		}
		list := func(body any) *translate.Outgoing {
			api, platform := newGate(t, DefaultConfig()).api, constant{
				"listPods": {Status: 200, Body: body}, "listGpuTypes": {Status: 200, Body: fixture("gpus")},
			}
			return api.Serve(t.Context(), "listPods", in, platform)
		}
		body := map[string]any{"pods": pods}
		if pods == nil {
			body["pods"] = rapid.SampledFrom([]any{nil, "", []any{}, map[string]any{}}).Draw(rt, "none")
		}
		want, got := list(body), list(storetest.Recorded(body))
		if got.Status != want.Status || string(got.Body) != string(want.Body) {
			rt.Fatalf("of Records:\n%d %s\nof maps:\n%d %s", got.Status, got.Body, want.Status, want.Body)
		}
	})
}
