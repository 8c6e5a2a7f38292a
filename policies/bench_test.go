package policies_test

import (
	"testing"
)

func BenchmarkDecide(b *testing.B) {
	e := newEngine(b, demo())
	in := call(b, "createPod", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		if d, err := e.Decide(b.Context(), "acme", in); err != nil || !d.Allowed() {
			b.Fatal(d, err)
		}
	}
}
