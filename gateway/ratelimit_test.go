package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/world"
)

const meshConfiguration = `
platform: {base_url: "UPSTREAM"}
redis: {embedded: true}
limits: {mode: MODE, timeout: 10s}
envoy:
  listen: 127.0.0.1:0
  ratelimit:
    - domain: mesh
      rules:
        - {id: uploads, entries: [{key: path, value: /upload}, {key: address}], limits: {minute: 3}}
        - {id: path, entries: [{key: path}], limits: {hour: 10}}
    - {domain: lenient, org: acme, unknown: pass, failure: open}
orgs:
  - id: acme
    credential: {env: KEY}
    limits: {day: 1000}
    teams: [{id: research, limits: {minute: 6}}, {id: free}]
    keys:
      - {id: ann, team: research, sha256: SHA256(key_ann_), limits: {minute: 4, hour: 100}}
      - {id: bob, team: research, sha256: SHA256(key_bob_)}
      - {id: probe, sha256: SHA256(key_probe), exempt: true}
      - {id: bound, sha256: SHA256(key_bound), addresses: [10.0.0.0/8], limits: {minute: 4}}
  - id: globex
    credential: {env: OTHER}
    limits: {minute: 2}
    keys: [{id: eve, sha256: SHA256(key_eve_)}]
`

// meshNow is when everything happens: 40 s before the end of a minute.
var meshNow = time.Date(2026, 11, 21, 10, 0, 20, 0, time.UTC)

// mesh is a gateway with its rate limit service, as a filter of Envoy calls it.
type mesh struct {
	ratelimitv3.RateLimitServiceClient

	gateway *gateway.Gateway
	store   *miniredis.Miniredis
}

func newMesh(t *testing.T, mode string) *mesh {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(canned))
	t.Cleanup(upstream.Close)
	m := &mesh{store: miniredis.RunT(t)}
	m.store.SetTime(meshNow)
	cfg := world.Configuration(t, strings.NewReplacer("UPSTREAM", upstream.URL, "MODE", mode).Replace(meshConfiguration), map[string]string{"KEY": "pk", "OTHER": "pk2"})
	m.gateway = world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, m.store.Addr()), Now: func() time.Time { return meshNow }})
	l := world.Listen(t)
	world.Serve(t, m.gateway.ExtProc(), l)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m.RateLimitServiceClient = ratelimitv3.NewRateLimitServiceClient(conn)
	return m
}

// get reads the list of pods with a key.
func (m *mesh) get(key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/v2/pods", nil)
	r.RequestURI = "/v2/pods"
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	m.gateway.Handler().ServeHTTP(w, r)
	return w
}

// descriptor has the entries of pairs, written key=value.
func descriptor(pairs ...string) *commonv3.RateLimitDescriptor {
	d := new(commonv3.RateLimitDescriptor)
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func hits(d *commonv3.RateLimitDescriptor, n uint64) *commonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func override(d *commonv3.RateLimitDescriptor, n uint32, unit typev3.RateLimitUnit) *commonv3.RateLimitDescriptor {
	d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: unit}
	return d
}

func inDomain(domain string, descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: descriptors}
}

func adding(n uint32, req *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitRequest {
	req.HitsAddend = n
	return req
}

// words is an answer in short: the verdict, and for each descriptor its verdict, the
// limit it tells of, what is left of it and when it resets.
func words(res *ratelimitv3.RateLimitResponse) []string {
	all := []string{res.GetOverallCode().String()}
	for _, s := range res.GetStatuses() {
		text := s.GetCode().String()
		if l := s.GetCurrentLimit(); l != nil {
			text += fmt.Sprintf(" %s %d/%s left %d, %s", l.GetName(), l.GetRequestsPerUnit(), l.GetUnit(), s.GetLimitRemaining(), s.GetDurationUntilReset().AsDuration())
		}
		all = append(all, text)
	}
	return all
}

// What descriptors mean, each line on counters that hold nothing yet.
func TestRateLimitServiceDescriptors(t *testing.T) {
	const huge = 1<<32 - 1
	for name, tc := range map[string]struct {
		req  *ratelimitv3.RateLimitRequest
		want []string
	}{
		"organisation": {inDomain("mesh", descriptor("org=acme")), []string{"OK", "OK org:acme 1000/DAY left 999, 13h59m40s"}},
		"team":         {inDomain("mesh", descriptor("org=acme", "team=research")), []string{"OK", "OK team:research 6/MINUTE left 5, 40s"}},
		"key":          {inDomain("mesh", descriptor("org=acme", "key=ann")), []string{"OK", "OK key:ann 4/MINUTE left 3, 40s"}},
		"named once": {inDomain("mesh", descriptor("org=acme"), descriptor("team=research"), descriptor("key=ann")), []string{
			"OK", "OK org:acme 1000/DAY left 999, 13h59m40s", "OK team:research 6/MINUTE left 5, 40s", "OK key:ann 4/MINUTE left 3, 40s",
		}},
		"organisation of the domain":  {inDomain("lenient", descriptor("key=ann")), []string{"OK", "OK key:ann 4/MINUTE left 3, 40s"}},
		"caller":                      {inDomain("mesh", descriptor("authorization=Bearer key_ann_")), []string{"OK", "OK key:ann 4/MINUTE left 3, 40s"}},
		"caller without own quotas":   {inDomain("mesh", descriptor("authorization=bearer key_bob_")), []string{"OK", "OK team:research 6/MINUTE left 5, 40s"}},
		"caller that is not limited":  {inDomain("mesh", descriptor("authorization=Bearer key_probe")), []string{"OK", "OK"}},
		"caller at its address":       {inDomain("mesh", descriptor("authorization=Bearer key_bound", "remote_address=10.1.2.3")), []string{"OK", "OK key:bound 4/MINUTE left 3, 40s"}},
		"caller at another address":   {inDomain("mesh", descriptor("authorization=Bearer key_bound", "remote_address=11.1.2.3")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"caller without its address":  {inDomain("mesh", descriptor("authorization=Bearer key_bound")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"caller and something else":   {inDomain("mesh", descriptor("authorization=Bearer key_ann_", "path=/")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"team without quotas":         {inDomain("mesh", descriptor("org=acme", "team=free")), []string{"OK", "OK"}},
		"rule":                        {inDomain("mesh", descriptor("org=acme", "path=/upload", "address=10.0.0.1")), []string{"OK", "OK descriptor:mesh/uploads/%2Fupload/10.0.0.1 3/MINUTE left 2, 40s"}},
		"rule for any value":          {inDomain("mesh", descriptor("org=acme", "path=/{x} ü")), []string{"OK", "OK descriptor:mesh/path/%2F%7Bx%7D%20%C3%BC 10/HOUR left 9, 59m40s"}},
		"rule and caller":             {inDomain("mesh", descriptor("path=/a"), descriptor("authorization=Bearer key_ann_")), []string{"OK", "OK descriptor:mesh/path/%2Fa 10/HOUR left 9, 59m40s", "OK key:ann 4/MINUTE left 3, 40s"}},
		"value of great length":       {inDomain("mesh", descriptor("org=acme", "path="+strings.Repeat("a", 70000))), []string{"OK", "OK descriptor:#c1c9eecd49fd31baf92d1069bb54e60acf3041c606fc0cdb458d6e993567d11a 10/HOUR left 9, 59m40s"}},
		"hits":                        {adding(3, inDomain("mesh", descriptor("org=acme", "key=ann"))), []string{"OK", "OK key:ann 4/MINUTE left 1, 40s"}},
		"hits of a descriptor":        {adding(3, inDomain("mesh", descriptor("org=acme"), hits(descriptor("key=ann"), 2))), []string{"OK", "OK org:acme 1000/DAY left 997, 13h59m40s", "OK key:ann 4/MINUTE left 2, 40s"}},
		"the same twice":              {inDomain("mesh", descriptor("org=globex"), descriptor("org=globex")), []string{"OK", "OK org:globex 2/MINUTE left 0, 40s", "OK org:globex 2/MINUTE left 0, 40s"}},
		"too many hits":               {adding(5, inDomain("mesh", descriptor("org=acme"), descriptor("key=ann"))), []string{"OVER_LIMIT", "OK org:acme 1000/DAY left 1000, 13h59m40s", "OVER_LIMIT key:ann 4/MINUTE left 4, 40s"}},
		"most hits":                   {adding(huge, inDomain("mesh", descriptor("org=acme"))), []string{"OVER_LIMIT", "OVER_LIMIT org:acme 1000/DAY left 1000, 13h59m40s"}},
		"most hits of a descriptor":   {inDomain("mesh", hits(descriptor("org=acme"), 1<<64-1)), []string{"OVER_LIMIT", "OVER_LIMIT org:acme 1000/DAY left 1000, 13h59m40s"}},
		"override lowers":             {inDomain("mesh", override(descriptor("org=acme", "key=ann"), 2, typev3.RateLimitUnit_MINUTE)), []string{"OK", "OK key:ann 2/MINUTE left 1, 40s"}},
		"override does not raise":     {inDomain("mesh", override(descriptor("org=acme", "key=ann"), 9, typev3.RateLimitUnit_MINUTE)), []string{"OK", "OK key:ann 4/MINUTE left 3, 40s"}},
		"override of another window":  {inDomain("mesh", override(descriptor("org=globex"), 1, typev3.RateLimitUnit_HOUR)), []string{"OK", "OK org:globex 1/HOUR left 0, 59m40s"}},
		"override for a caller":       {inDomain("mesh", override(descriptor("authorization=Bearer key_bob_"), 2, typev3.RateLimitUnit_DAY)), []string{"OK", "OK key:bob 2/DAY left 1, 13h59m40s"}},
		"override of a rule":          {inDomain("mesh", override(descriptor("org=acme", "path=/a"), 50, typev3.RateLimitUnit_MINUTE)), []string{"OK", "OK descriptor:mesh/path/%2Fa 50/MINUTE left 49, 40s"}},
		"override without a rule":     {inDomain("mesh", override(descriptor("org=acme", "x=1", "y=2"), 50, typev3.RateLimitUnit_MINUTE)), []string{"OK", "OK descriptor:mesh//x/1/y/2 50/MINUTE left 49, 40s"}},
		"override of nothing":         {inDomain("mesh", override(descriptor("org=acme"), 0, typev3.RateLimitUnit_DAY), descriptor("key=ann")), []string{"OVER_LIMIT", "OVER_LIMIT", "OK"}},
		"unknown organisation":        {inDomain("mesh", descriptor("org=nowhere")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"no organisation":             {inDomain("mesh", descriptor("path=/upload")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"unknown team":                {inDomain("mesh", descriptor("org=acme", "team=nobody")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"stranger":                    {inDomain("mesh", descriptor("authorization=Bearer key_nowhere")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"one unknown of two":          {inDomain("mesh", descriptor("org=acme"), descriptor("team=nobody")), []string{"OVER_LIMIT", "OK", "OVER_LIMIT"}},
		"no rule":                     {inDomain("mesh", descriptor("org=acme", "x=1")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"more than a key":             {inDomain("mesh", descriptor("org=acme", "key=ann", "path=/")), []string{"OVER_LIMIT", "OVER_LIMIT"}},
		"unknown passes":              {inDomain("lenient", descriptor("x=1"), descriptor("key=ann")), []string{"OK", "OK", "OK key:ann 4/MINUTE left 3, 40s"}},
		"caller of another passes":    {inDomain("lenient", descriptor("authorization=Bearer key_eve_")), []string{"OK", "OK"}},
		"other organisation passes":   {inDomain("lenient", descriptor("org=globex")), []string{"OK", "OK"}},
		"unknown passes, over others": {adding(5, inDomain("lenient", descriptor("x=1"), descriptor("key=ann"))), []string{"OVER_LIMIT", "OK", "OVER_LIMIT key:ann 4/MINUTE left 4, 40s"}},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := newMesh(t, "exact").ShouldRateLimit(t.Context(), tc.req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, words(res)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be counted is an error, and takes nothing.
func TestRateLimitServiceRefusesToCount(t *testing.T) {
	m := newMesh(t, "exact")
	many := make([]*commonv3.RateLimitDescriptor, 10_000)
	for i := range many {
		many[i] = descriptor("org=acme", fmt.Sprintf("path=%d", i))
	}
	refill := descriptor("org=acme")
	refill.IsNegativeHits = true
	for name, tc := range map[string]struct {
		req  *ratelimitv3.RateLimitRequest
		want string
	}{
		"empty domain":         {inDomain("", descriptor("org=acme")), `no domain ""`},
		"unknown domain":       {inDomain("elsewhere", descriptor("org=acme")), `no domain "elsewhere"`},
		"no descriptors":       {inDomain("mesh"), "0 descriptors"},
		"10,000 descriptors":   {inDomain("mesh", many...), "10000 descriptors, want 1 to 8"},
		"no entries":           {inDomain("mesh", descriptor("org=acme"), descriptor()), "without entries"},
		"two organisations":    {inDomain("mesh", descriptor("org=acme"), descriptor("authorization=Bearer key_eve_")), "counts for one"},
		"too many quotas":      {inDomain("mesh", append(many[:7:7], descriptor("authorization=Bearer key_ann_"))...), "10 quotas in one request, want at most 8"},
		"limit per second":     {inDomain("mesh", override(descriptor("org=acme"), 1, typev3.RateLimitUnit_SECOND)), "limit per SECOND"},
		"limit without unit":   {inDomain("mesh", override(descriptor("org=acme"), 1, typev3.RateLimitUnit_UNKNOWN)), "limit per UNKNOWN"},
		"negative hits":        {inDomain("mesh", refill), "is_negative_hits"},
		"zero hits of its own": {inDomain("mesh", hits(descriptor("org=acme"), 0)), "hits_addend 0"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := m.ShouldRateLimit(t.Context(), tc.req)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), tc.want) {
				t.Errorf("got %v and error %v, want InvalidArgument with %q", res, err, tc.want)
			}
		})
	}
	if keys := m.store.Keys(); len(keys) > 0 {
		t.Errorf("counted all the same: %v", keys)
	}
}

// Calls of the HTTP door and of other services are counted together, and both are
// told the same of it.
func TestRateLimitServiceSharesQuotas(t *testing.T) {
	m := newMesh(t, "exact")
	req := inDomain("mesh", descriptor("authorization=Bearer key_ann_"))
	headers := func(res *ratelimitv3.RateLimitResponse) map[string]string {
		got := make(map[string]string)
		for _, h := range res.GetResponseHeadersToAdd() {
			got[h.GetKey()] = h.GetValue()
		}
		return got
	}
	for i := range 2 {
		if w := m.get("key_ann_"); w.Code != http.StatusOK {
			t.Fatalf("call %d: %d %s", i, w.Code, w.Body)
		}
	}
	var last *ratelimitv3.RateLimitResponse
	for i := range 3 {
		var err error
		if last, err = m.ShouldRateLimit(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		want := ratelimitv3.RateLimitResponse_OK
		if i == 2 {
			want = ratelimitv3.RateLimitResponse_OVER_LIMIT
		}
		if got := last.GetOverallCode(); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	w := m.get("key_ann_")
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("status = %d, want 429", w.Code)
	}
	want := limitHeaders(w)
	if diff := cmp.Diff(want, headers(last)); diff != "" || want["retry-after"] != "40" {
		t.Errorf("headers (-http +service):\n%s", diff)
	}
	// The two units that the refusals did not take are left to the team.
	if w := m.get("key_bob_"); w.Code != http.StatusOK || !strings.Contains(limitHeaders(w)["ratelimit"], `"minute";r=1;`) {
		t.Errorf("another key: %d, %v, want 200 and one left of the team", w.Code, limitHeaders(w))
	}
}

// limitHeaders returns the headers of an answer that tell of limits, by their names
// in lower case.
func limitHeaders(w *httptest.ResponseRecorder) map[string]string {
	got := make(map[string]string)
	for name, values := range w.Header() {
		if name = strings.ToLower(name); strings.HasPrefix(name, "ratelimit") || name == "retry-after" {
			got[name] = strings.Join(values, ", ")
		}
	}
	return got
}

// A request that one of its descriptors refuses takes nothing for the others, and
// callers that come at once get exactly the quota.
func TestRateLimitServiceIsAtomic(t *testing.T) {
	for _, mode := range []string{"exact", "leased"} {
		t.Run(mode, func(t *testing.T) {
			m := newMesh(t, mode)
			req := inDomain("mesh", descriptor("org=acme"), descriptor("team=research"), descriptor("path=/upload", "address=a"))
			var passed atomic.Int64
			var group sync.WaitGroup
			for range 20 {
				group.Go(func() {
					res, err := m.ShouldRateLimit(context.WithoutCancel(t.Context()), req)
					if err != nil {
						t.Error(err)
					}
					if res.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
						passed.Add(1)
					}
				})
			}
			group.Wait()
			if passed.Load() != 3 {
				t.Errorf("%d requests passed, want the 3 of the rule", passed.Load())
			}
			most := hits(descriptor("org=acme"), 1<<64-1)
			res, err := m.ShouldRateLimit(t.Context(), inDomain("mesh", most, most))
			if err != nil || res.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
				t.Errorf("more than any quota holds: %v and error %v, want OVER_LIMIT", res, err)
			}
			res, err = m.ShouldRateLimit(t.Context(), inDomain("mesh", descriptor("org=acme"), descriptor("team=research")))
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"OK", "OK org:acme 1000/DAY left 996, 13h59m40s", "OK team:research 6/MINUTE left 2, 40s"}
			if diff := cmp.Diff(want, words(res)); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// Without the store a domain's own policy decides, or that of calls that change
// something.
func TestRateLimitServiceWithoutStore(t *testing.T) {
	m := newMesh(t, "exact")
	m.store.SetError("away")
	if _, err := m.ShouldRateLimit(t.Context(), inDomain("mesh", descriptor("org=acme"))); status.Code(err) != codes.Unavailable {
		t.Errorf("error = %v, want Unavailable", err)
	}
	res, err := m.ShouldRateLimit(t.Context(), inDomain("lenient", descriptor("org=acme")))
	if err != nil || res.GetOverallCode() != ratelimitv3.RateLimitResponse_OK {
		t.Errorf("got %v and error %v, want OK by failure: open", res, err)
	}
}
