package v1

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
)

// constant answers every call with the same, so that only the translation is
// measured.
type constant map[string]*translate.Response

func (c constant) Call(_ context.Context, r *translate.Request) (*translate.Response, error) {
	return c[r.Operation], nil
}

// benchAPI is an API whose catalog cache is warm after the first call.
func benchAPI(b *testing.B) (*API, constant) {
	b.Helper()
	api, err := New(DefaultConfig(), translate.Deps{Store: storetest.NewMemoryStore(time.Now)})
	if err != nil {
		b.Fatal(err)
	}
	return api, constant{
		"getPod":       {Status: 200, Body: fixture("pod")},
		"createPod":    {Status: 201, Body: fixture("newPod")},
		"listGpuTypes": {Status: 200, Body: fixture("gpus")},
	}
}

func BenchmarkGetPod(b *testing.B) {
	api, platform := benchAPI(b)
	in := &translate.Incoming{Params: map[string]string{"podId": "p1"}, Account: "acme"}
	b.ReportAllocs()
	for b.Loop() {
		if out := api.Serve(b.Context(), "getPod", in, platform); out.Status != 200 {
			b.Fatalf("status %d", out.Status)
		}
	}
}

func BenchmarkListPods(b *testing.B) {
	api, _ := benchAPI(b)
	platform := manyPods(20)
	in := &translate.Incoming{Account: "acme"}
	b.ReportAllocs()
	for b.Loop() {
		if out := api.Serve(b.Context(), "listPods", in, platform); out.Status != 200 {
			b.Fatalf("status %d", out.Status)
		}
	}
}

func BenchmarkCreatePod(b *testing.B) {
	api, platform := benchAPI(b)
	in := &translate.Incoming{HasBody: true, Account: "acme", Body: mustJSON(`{"imageName":"i","gpuTypeIds":["NVIDIA L4","NVIDIA RTX A5000"],"env":{"A":"b"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if out := api.Serve(b.Context(), "createPod", in, platform); out.Status != 201 {
			b.Fatalf("status %d", out.Status)
		}
	}
}
