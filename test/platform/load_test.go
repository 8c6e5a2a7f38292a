package platform

import (
	"fmt"
	"math"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// endless is a catalog in which nothing runs out.
func endless() *Catalog {
	c := DefaultCatalog()
	for i := range c.GPUs {
		c.GPUs[i].Stock = -1
	}
	return c
}

func TestLargeListsAreFast(t *testing.T) {
	r := newRig(t, Options{Catalog: endless(), KeepCalls: -1, PageSize: -1, Accounts: []Account{
		{ID: "a", Key: DefaultKey, Balance: 1e9, Exempt: true, WorkerQuota: 10_000},
	}})
	for range 10_000 {
		r.newPod(gpuPod)
	}
	for range 1000 {
		r.newEndpoint(strings.Replace(queueEndpoint, `"name"`, `"workers":{"min":1},"name"`, 1))
	}
	goroutines := runtime.NumGoroutine()
	r.Clock().Advance(time.Hour)
	var pods, endpoints answer
	took := time.Duration(math.MaxInt64) // the least of several runs: the machine may be busy
	for n := 0; n < 10 && took > time.Second; n++ {
		began := time.Now()
		pods = r.plain(r.Server, "GET", "/v2/pods", "")
		endpoints = r.plain(r.Server, "GET", "/v2/serverless", "")
		took = min(took, time.Since(began))
	}
	if n := strings.Count(pods.raw, `"status":"RUNNING"`); n != 10_000 {
		t.Errorf("got %d running pods, want 10000", n)
	}
	if n := strings.Count(endpoints.raw, `"requestUrls"`); n != 1000 {
		t.Errorf("got %d endpoints, want 1000", n)
	}
	if took > time.Second && !raceDetector {
		t.Errorf("listing 10000 pods and 1000 endpoints took %s, want less than a second", took)
	}
	t.Logf("10000 pods and 1000 endpoints: %s", took)
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines for resources that exist, want none", now-goroutines)
	}
}

// Two hundred callers at once do everything that can be done to pods; stock and
// balance must come out even.
func TestManyCallers(t *testing.T) {
	clock := NewClock(start(), 1000)
	r := newRig(t, Options{Clock: clock, Accounts: []Account{
		{ID: "a", Key: "a", Balance: 1e9, Exempt: true}, {ID: "b", Key: "b", Balance: 1e9, Exempt: true},
	}})
	id := r.as("a").newEndpoint(queueEndpoint)
	h := r.RunHandler()
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			me := r.as(string("ab"[i%2]))
			for range 2 {
				pod := me.call("POST", "/v2/pods", gpuPod).text("id")
				for _, one := range []struct{ method, path, body string }{
					{"GET", "/v2/pods", ""},
					{"POST", "/v2/pods/" + pod + "/action", `{"action":"stop"}`},
					{"GET", "/v2/pods/" + pod, ""},
					{"PATCH", "/v2/pods/" + pod, `{"name":"x"}`},
					{"GET", "/v2/billing/pods", ""},
					{"DELETE", "/v2/pods/" + pod, ""},
					{"GET", "/v2/serverless/" + id + "/workers", ""},
				} {
					if a := me.plain(me.Server, one.method, one.path, one.body); a.status >= 500 {
						t.Errorf("%s %s: got %d %s", one.method, one.path, a.status, a.raw)
					}
				}
				if i%2 == 0 {
					me.callOn(h, "POST", "/v2/"+id+"/run", `{"input":{}}`)
				}
			}
		})
	}
	callers.Wait()
	clock.SetSpeed(0)
	clock.Advance(time.Hour)
	for _, key := range []string{"a", "b"} {
		if raw := r.as(key).want(200, "GET", "/v2/pods", "").raw; raw != empty("pods") {
			t.Errorf("account %s has pods left: %.200s", key, raw)
		}
		if _, perHour, _ := r.Balance(key); perHour != 0 {
			t.Errorf("account %s pays %v per hour for nothing", key, perHour)
		}
	}
	for key, s := range r.catalog.stock {
		if s.Used != 0 {
			t.Errorf("%v: %d in use by no resource", key, s.Used)
		}
	}
}

func benchmark(b *testing.B, method, path, body string, status int) {
	b.Helper()
	s, err := New(Options{Catalog: endless(), Accounts: []Account{{ID: "a", Key: DefaultKey, Balance: 1e12, Exempt: true}}})
	if err != nil {
		b.Fatal(err)
	}
	r := &rig{Server: s, t: b, key: DefaultKey}
	id := r.newPod(gpuPod)
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequest(method, strings.Replace(path, "{id}", id, 1), strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+DefaultKey)
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, req)
		if rec.Code != status {
			b.Fatal(fmt.Sprint(rec.Code, rec.Body))
		}
	}
}

func BenchmarkGetPod(b *testing.B)    { benchmark(b, "GET", "/v2/pods/{id}", "", 200) }
func BenchmarkCreatePod(b *testing.B) { benchmark(b, "POST", "/v2/pods", gpuPod, 201) }
