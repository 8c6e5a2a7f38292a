package platform

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// amount reads a number of an answer, to be compared with some tolerance.
func (a answer) amount(t *testing.T, path string, want float64) {
	t.Helper()
	got, isNumber := a.at(path).(float64)
	if !isNumber || math.Abs(got-want) > 1e-6 {
		t.Errorf("%s: got %v, want %v\n%s", path, a.at(path), want, a.raw[:min(len(a.raw), 600)])
	}
}

func TestPodBilling(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newPod(`{"name":"a","image":"i","disk":73,"gpu":{"id":"NVIDIA L4"},"mounts":{"persistent":{"size":73,"path":"/p"}}}`)
	r.Clock().Advance(90 * time.Minute)
	r.want(200, "POST", "/v2/pods/"+id+"/action", `{"action":"stop"}`)
	r.Clock().Advance(30 * time.Minute)
	other := r.newPod(`{"name":"b","image":"i","disk":73,"cpu":{"id":"cpu3c","vcpuCount":2}}`)
	r.Clock().Advance(time.Hour)
	r.want(204, "DELETE", "/v2/pods/"+id, "")
	r.want(204, "DELETE", "/v2/pods/"+other, "")
	r.Clock().Advance(time.Hour)

	a := r.want(200, "GET", "/v2/billing/pods?bucketSize=hour", "")
	a.amount(t, "records.0.gpuAmount", 0.43)
	a.amount(t, "records.0.diskAmount", 0.02)
	a.amount(t, "records.0.totalAmount", 0.45)
	a.amount(t, "records.1.gpuAmount", 0.215)
	a.amount(t, "records.1.diskAmount", 0.01+0.01)
	a.amount(t, "records.2.diskAmount", 0.02)
	a.amount(t, "records.3.cpuAmount", 0.08)
	a.amount(t, "metadata.totals.gpuAmount", 0.645)
	if a.at("metadata.recordCount") != 4.0 || a.at("metadata.uniquePodCount") != 2.0 || a.text("records.3.podId") != other {
		t.Errorf("metadata: got %v", a.at("metadata"))
	}
	want := map[string]any{"startTime": "2026-05-02T16:00:00Z", "endTime": "2026-06-01T16:00:00Z", "bucketSize": "hour", "podId": nil}
	if diff := cmp.Diff(want, a.at("metadata.query")); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	left, _, _ := r.Balance("default")
	a.amount(t, "metadata.totals.totalAmount", DefaultBalance-left)

	one := r.want(200, "GET", "/v2/billing/pods?podId="+other, "")
	if one.at("metadata.recordCount") != 1.0 || one.text("metadata.query.podId") != other {
		t.Errorf("filtered: got %s", one.raw)
	}
	half := r.want(200, "GET", "/v2/billing/pods?bucketSize=hour&startTime=2026-06-01T13:59:00Z&endTime=2026-06-01T14:00:00Z", "")
	if half.at("metadata.recordCount") != 1.0 || half.text("metadata.query.startTime") != "2026-06-01T13:00:00Z" {
		t.Errorf("a part of the time: got %s", half.raw)
	}
	sum := r.want(200, "GET", "/v2/billing?lastN=2", "")
	sum.amount(t, "records.0.totalAmount", 0)
	sum.amount(t, "records.1.podGpuAmount", 0.645)
	sum.amount(t, "records.1.totalAmount", DefaultBalance-left)
	if sum.at("metadata.recordCount") != 2.0 || sum.text("records.1.endTime") != "2026-06-02T00:00:00Z" {
		t.Errorf("aggregate: got %s", sum.raw)
	}
}

func TestVolumeAndClusterBilling(t *testing.T) {
	r := newRig(t, Options{})
	r.want(201, "POST", "/v2/network-volumes", `{"name":"v","size":2000,"dataCenter":"EU-RO-1"}`)
	high := r.want(201, "POST", "/v2/network-volumes", `{"name":"v","size":730,"dataCenter":"EU-RO-1","type":"HIGH_PERFORMANCE"}`).text("id")
	id := r.want(201, "POST", "/v2/clusters", slurm).text("id")
	r.Clock().Advance(time.Hour)
	v := r.want(200, "GET", "/v2/billing/network-volumes", "")
	v.amount(t, "records.0.standardAmount", (70.0+50.0)/730)
	v.amount(t, "records.1.highPerformanceAmount", 0.14)
	if v.at("metadata.uniqueNetworkVolumeCount") != 2.0 {
		t.Errorf("metadata: got %v", v.at("metadata"))
	}
	if got := r.want(200, "GET", "/v2/billing/network-volumes?networkVolumeId="+high, "").text("records.0.networkVolumeId"); got != high {
		t.Errorf("filtered: got %q", got)
	}
	c := r.want(200, "GET", "/v2/billing/clusters?clusterId="+id, "")
	c.amount(t, "records.0.gpuAmount", 6*0.43)
	c.amount(t, "records.0.networkingAmount", 0.03)
	if c.at("metadata.uniqueClusterCount") != 1.0 {
		t.Errorf("metadata: got %v", c.at("metadata"))
	}
	for path, want := range map[string]float64{"serverless": 0, "endpoints": 31, "pods": 0} {
		if got := r.want(200, "GET", "/v2/billing/"+path, "").at("metadata.recordCount"); got != want {
			t.Errorf("%s: got %v records, want %v", path, got, want)
		}
	}
}

func TestBillingQueries(t *testing.T) {
	r := newRig(t, Options{})
	for query, status := range map[string]int{
		"": 200, "bucketSize=week": 200, "bucketSize=century": 422, "lastN=0": 422, "lastN=x": 422, "startTime=now": 422,
		"lastN=3&startTime=2026-06-01T00:00:00Z": 400, "startTime=2026-06-02T00:00:00Z&endTime=2026-06-01T00:00:00Z": 400,
		"bucketSize=hour&startTime=1970-01-01T00:00:00Z": 400,
	} {
		r.want(status, "GET", "/v2/billing?"+query, "")
	}
	now := time.Date(2026, 6, 3, 12, 34, 56, 0, time.UTC) // a Wednesday
	for size, want := range map[string][2]string{
		"hour": {"2026-06-03T12:00:00Z", "2026-06-03T13:00:00Z"}, "day": {"2026-06-03T00:00:00Z", "2026-06-04T00:00:00Z"},
		"week": {"2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z"}, "month": {"2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z"},
		"year": {"2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	} {
		at := floor(now, size)
		if got := [2]string{stamp(at), stamp(step(at, size, 1))}; got != want {
			t.Errorf("%s: got %v, want %v", size, got, want)
		}
	}
	if got := stamp(floor(time.Date(2026, 6, 7, 23, 0, 0, 0, time.UTC), "week")); !strings.HasPrefix(got, "2026-06-01") {
		t.Errorf("a Sunday is in the week of %s", got)
	}
	r.Clock().AdvanceTo(now)
	a := r.want(200, "GET", "/v2/billing?bucketSize=week&startTime=2026-05-20T10:00:00Z&endTime=2026-06-01T00:00:00Z", "")
	if a.text("metadata.query.startTime") != "2026-05-18T00:00:00Z" || a.text("metadata.query.endTime") != "2026-06-01T00:00:00Z" || a.at("metadata.recordCount") != 2.0 {
		t.Errorf("an end on a boundary stays: got %v", a.at("metadata"))
	}
}
