package graphql_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/translate"
)

// benchmark serves one request again and again and reports the v2 calls it
// takes, without the reads that the catalog remembers.
func benchmark(b *testing.B, document, v2 string) {
	b.Helper()
	r := newRig(b)
	s := newScript(b, v2)
	in := &translate.Incoming{Account: account, Body: map[string]any{"query": document}, HasBody: true}
	r.api.Serve(b.Context(), in, s) // fills the catalog
	s.calls = nil
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if out := r.api.Serve(b.Context(), in, s); out.Status != 200 {
			b.Fatalf("got %d %s", out.Status, out.Body)
		}
		if n == 1 {
			b.ReportMetric(float64(len(s.calls)), "v2calls/op")
		}
		s.calls = s.calls[:0]
	}
}

func BenchmarkQueryPods(b *testing.B) {
	parts := sections(b, "testdata/account/myself.pods.txtar")
	benchmark(b, parts["request.graphql"], parts["v2"])
}

func BenchmarkQueryPodNames(b *testing.B) {
	parts := sections(b, "testdata/account/myself.idname.txtar")
	benchmark(b, parts["request.graphql"], parts["v2"])
}

func BenchmarkDeploy(b *testing.B) {
	parts := sections(b, "testdata/pods/podFindAndDeployOnDemand.literals.txtar")
	benchmark(b, parts["request.graphql"], parts["v2"])
}

func BenchmarkPrices(b *testing.B) {
	parts := sections(b, "testdata/catalog/gpuTypes.aliases.txtar")
	benchmark(b, parts["request.graphql"], parts["v2"])
}

// BenchmarkRefused is the cost of a document that is turned away.
func BenchmarkRefused(b *testing.B) {
	r := newRig(b)
	in := &translate.Incoming{Account: account, Body: map[string]any{"query": hostile()["exponential through aliases"]}}
	b.ReportAllocs()
	for b.Loop() {
		if out := r.api.Serve(b.Context(), in, nil); out.Status != 400 {
			b.Fatalf("got %d", out.Status)
		}
	}
}

// BenchmarkRepeatedVariable is the cost of a small document that uses a long
// variable 441 times and is turned away for its last field.
func BenchmarkRepeatedVariable(b *testing.B) {
	r := newRig(b)
	in := &translate.Incoming{Account: account, HasBody: true, Body: map[string]any{
		"query": pricesOf(misfit, "v"), "variables": decode(b, `{"v":`+longList(2000)+`}`),
	}}
	b.ReportAllocs()
	for b.Loop() {
		if out := r.api.Serve(b.Context(), in, nil); out.Status != 400 {
			b.Fatalf("got %d", out.Status)
		}
	}
}

// BenchmarkLongVariable is the same document without the fault: every price of
// every type reads the variable.
func BenchmarkLongVariable(b *testing.B) {
	parts := sections(b, "testdata/catalog/gpuTypes.aliases.txtar")
	r := newRig(b)
	s := newScript(b, parts["v2"])
	in := &translate.Incoming{Account: account, HasBody: true, Body: map[string]any{
		"query": pricesOf("", "v"), "variables": decode(b, `{"v":`+longList(8000)+`}`),
	}}
	b.ReportAllocs()
	for b.Loop() {
		if out := r.api.Serve(b.Context(), in, s); out.Status != 200 {
			b.Fatalf("got %d %s", out.Status, out.Body)
		}
	}
}
