package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

const gpuAnswer = `{"gpus":[
 {"id":"NVIDIA GeForce RTX 4090","name":"RTX 4090","pool":"ADA_24","manufacturer":"NVIDIA","memory":24,"secure":true,"community":true,
  "price":{"secure":0.44,"community":0.31,"serverless":1.1},"maxCount":{"secure":8,"community":4}},
 {"id":"NVIDIA L4","name":"L4","pool":"ADA_24","manufacturer":"NVIDIA","memory":24,"secure":true,"community":false,
  "price":{"secure":0.43,"community":0,"serverless":0.69},"maxCount":{"secure":8,"community":0}},
 {"id":"NVIDIA H100 80GB HBM3","name":"H100","pool":"ADA_80_PRO","manufacturer":"NVIDIA","memory":80,"secure":true,"community":true,
  "price":{"secure":2.69,"community":0},"maxCount":{"secure":8,"community":8}},
 {"id":"FREE","name":"x","pool":null,"manufacturer":"AMD","memory":1,"secure":true,"community":true,
  "price":{"secure":0,"community":-1},"maxCount":{"secure":8,"community":8}},
 {"id":"DEAR","name":"x","pool":null,"manufacturer":"AMD","memory":1,"secure":true,"community":true,
  "price":{"secure":1e9,"community":"0.1"},"maxCount":{"secure":8,"community":8}}]}`

const cpuAnswer = `{"cpus":[{"id":"cpu5c","name":"c","group":"g","vcpu":{"min":2,"max":32},"ramGbPerVcpu":2,
  "price":{"securePerVcpu":0.04,"serverlessPerVcpu":0.03}}]}`

func decode(t *testing.T, s string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func testSnapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	gpus, err := catalog.ParseGPUs(decode(t, gpuAnswer))
	if err != nil {
		t.Fatal(err)
	}
	cpus, err := catalog.ParseCPUs(decode(t, cpuAnswer))
	if err != nil {
		t.Fatal(err)
	}
	tiers, err := catalog.ParseTiers(decode(t, `{"dataCenters":[{"id":"EU-RO-1","networkVolumeTypes":["STANDARD","HIGH_PERFORMANCE"]},
		{"id":"EUR-NO-1","networkVolumeTypes":["HIGH_PERFORMANCE"]},{"id":"US-DE-1","networkVolumeTypes":[]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return catalog.NewSnapshot(catalog.Lists{GPUs: gpus, CPUs: cpus, Tiers: tiers}, catalog.Rates{Standard: 70_000, StandardAbove: 50_000}, time.Unix(1_700_000_000, 0))
}

func TestPrice(t *testing.T) {
	snap := testSnapshot(t)
	tests := []struct {
		name, op, action, after string
		want                    string // hourly/perGPU/gpus, or the reason
	}{
		{"pod, count and cloud by default", "createPod", "", `{"gpu":{"id":"NVIDIA L4"}}`, "0.43/0.43/1"},
		{"pod secure", "createPod", "", `{"gpu":{"id":"NVIDIA L4","count":3},"cloud":"SECURE"}`, "1.29/0.43/3"},
		{"pod community", "createPod", "", `{"gpu":{"id":"NVIDIA GeForce RTX 4090","count":2},"cloud":"COMMUNITY"}`, "0.62/0.31/2"},
		{"pod not offered", "createPod", "", `{"gpu":{"id":"NVIDIA L4"},"cloud":"COMMUNITY"}`, `GPU type "NVIDIA L4" is not offered in the COMMUNITY cloud`},
		{"pod offered at zero", "createPod", "", `{"gpu":{"id":"NVIDIA H100 80GB HBM3"},"cloud":"COMMUNITY"}`, `price of GPU type "NVIDIA H100 80GB HBM3" in the COMMUNITY cloud is not plausible`},
		{"pod zero price", "createPod", "", `{"gpu":{"id":"FREE"}}`, `price of GPU type "FREE" in the SECURE cloud is not plausible`},
		{"pod negative price", "createPod", "", `{"gpu":{"id":"FREE"},"cloud":"COMMUNITY"}`, `price of GPU type "FREE" in the COMMUNITY cloud is not plausible`},
		{"pod absurd price", "createPod", "", `{"gpu":{"id":"DEAR"}}`, `price of GPU type "DEAR" in the SECURE cloud is not plausible`},
		{"pod price of a wrong type", "createPod", "", `{"gpu":{"id":"DEAR"},"cloud":"COMMUNITY"}`, `price of GPU type "DEAR" in the COMMUNITY cloud is not plausible`},
		{"pod unknown type", "createPod", "", `{"gpu":{"id":"nvidia l4"}}`, `GPU type "nvidia l4" is not in the catalog`},
		{"pod unknown cloud", "createPod", "", `{"gpu":{"id":"NVIDIA L4"},"cloud":"ANY"}`, `unknown cloud "ANY"`},
		{"pod count of a wrong type", "createPod", "", `{"gpu":{"id":"NVIDIA L4","count":"1"}}`, "gpu.count is not a positive whole number"},
		{"pod count zero", "createPod", "", `{"gpu":{"id":"NVIDIA L4","count":0}}`, "gpu.count is not a positive whole number"},
		{"pod count beyond int64", "createPod", "", `{"gpu":{"id":"NVIDIA L4","count":18446744073709551617}}`, "gpu.count is not a positive whole number"},
		{"pod overflow", "createPod", "", `{"gpu":{"id":"NVIDIA L4","count":9223372036854775807}}`, "the price is out of range: 9223372036854775807 x NVIDIA L4 (SECURE) at 0.43"},
		{"pod with both", "createPod", "", `{"gpu":{"id":"NVIDIA L4"},"cpu":{"id":"cpu5c","vcpuCount":2}}`, "gpu and cpu are both set"},
		{"pod with neither", "createPod", "", `{}`, "neither gpu nor cpu is set"},
		{"cpu pod", "createPod", "", `{"cpu":{"id":"cpu5c","vcpuCount":4}}`, "0.16/0/0"},
		{"cpu pod, instance-style id", "createPod", "", `{"cpu":{"id":"cpu5c-4-8","vcpuCount":4}}`, "0.16/0/0"},
		{"cpu pod, larger size in the id", "podAction", "start", `{"cpu":{"id":"cpu5c-32-64","vcpuCount":2}}`, "1.28/0/0"},
		{"cpu pod, smaller size in the id", "podAction", "start", `{"cpu":{"id":"cpu5c-2-4","vcpuCount":4}}`, "0.16/0/0"},
		{"cpu pod, size beyond numbers", "podAction", "start", `{"cpu":{"id":"cpu5c-99999999999999999999-4","vcpuCount":2}}`, "the price is out of range: 9223372036854775807 vCPU of cpu5c-99999999999999999999-4 at 0.04"},
		{"cpu pod, half a size in the id", "createPod", "", `{"cpu":{"id":"cpu5c-32","vcpuCount":2}}`, `CPU flavour "cpu5c-32" is not in the catalog`},
		{"cpu endpoint, larger size in an id", "updateEndpoint", "", `{"cpu":[{"id":"cpu5c-32-64","vcpuCount":2},{"id":"cpu5c","vcpuCount":8}]}`, "2.88/0/0"},
		{"cpu pod without count", "createPod", "", `{"cpu":{"id":"cpu5c"}}`, "cpu.vcpuCount is not a positive whole number"},
		{"cpu pod in the community cloud", "createPod", "", `{"cpu":{"id":"cpu5c","vcpuCount":4},"cloud":"COMMUNITY"}`, "CPU pods are not priced in the COMMUNITY cloud"},
		{"update", "updatePod", "", `{"gpu":{"id":"NVIDIA L4","count":2},"cloud":"SECURE"}`, "0.86/0.43/2"},
		{"start", "podAction", "start", `{"gpu":{"id":"NVIDIA L4","count":2},"cloud":"SECURE"}`, "0.86/0.43/2"},
		{"stop", "podAction", "stop", `{"gpu":{"id":"gone"}}`, "0/0/0"},
		{"unknown action", "podAction", "reset", `{"gpu":{"id":"NVIDIA L4"}}`, `operation "podAction" with verb "" does not have a price rule`},
		{"endpoint by default", "createEndpoint", "", `{"gpu":{"pools":["ADA_24"]}}`, "3.3/1.1/3"},
		{"endpoint, exclusion", "createEndpoint", "", `{"gpu":{"pools":["ADA_24"],"excludedTypes":[" NVIDIA GeForce RTX 4090 "],"count":2},"workers":{"max":5}}`, "6.9/0.69/10"},
		{"endpoint, min above max", "createEndpoint", "", `{"gpu":{"pools":["ADA_24"]},"workers":{"min":50,"max":3}}`, "55/1.1/50"},
		{"endpoint without workers", "createEndpoint", "", `{"gpu":{"pools":["ADA_24"]},"workers":{"max":0}}`, "0/1.1/0"},
		{"endpoint, member without price", "createEndpoint", "", `{"gpu":{"pools":["ADA_24","ADA_80_PRO"]}}`, `serverless price of GPU type "NVIDIA H100 80GB HBM3" in pool "ADA_80_PRO" is not plausible`},
		{"endpoint, unknown pool", "createEndpoint", "", `{"gpu":{"pools":["X"]}}`, `serverless pool "X" is not in the catalog`},
		{"endpoint, nothing left", "updateEndpoint", "", `{"gpu":{"pools":["ADA_24"],"excludedTypes":["NVIDIA L4","NVIDIA GeForce RTX 4090"]}}`, "the exclusions remove every GPU type from the pools"},
		{"cpu endpoint", "createEndpoint", "", `{"cpu":[{"id":"cpu5c","vcpuCount":2},{"id":"cpu5c","vcpuCount":8}]}`, "0.72/0/0"},
		{"cluster", "createCluster", "", `{"compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":8,"podCount":250}}`, "860/0.43/2000"},
		{"cluster, dearer cloud", "createCluster", "", `{"compute":{"gpuTypeId":"NVIDIA GeForce RTX 4090","gpuCountPerPod":1,"podCount":2}}`, "0.88/0.44/2"},
		{"cluster overflow", "createCluster", "", `{"compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":9223372036854775807,"podCount":2}}`, "too many GPUs"},
		{"volume", "createNetworkVolume", "", `{"size":1000,"type":"STANDARD"}`, "0.09589/0/0"},
		{"volume above a terabyte", "createNetworkVolume", "", `{"size":1500,"type":"STANDARD"}`, "0.130137/0/0"},
		{"volume without a rate", "createNetworkVolume", "", `{"size":1000}`, `rate for network volumes of type "" is not configured`},
		{"volume of a centre's tier", "createNetworkVolume", "", `{"size":1000,"dataCenter":"EU-RO-1"}`, "0.09589/0/0"},
		{"volume of a centre's dear tier", "createNetworkVolume", "", `{"size":1000,"dataCenter":"EUR-NO-1"}`, `rate for network volumes of type "HIGH_PERFORMANCE" is not configured`},
		{"free", "deletePod", "", `{}`, "0/0/0"},
		{"no rule", "createThing", "", `{}`, `operation "createThing" does not have a price rule`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, _ := decode(t, tt.after).(map[string]any)
			c := price(snap, tt.op, tt.action, after)
			if got := shown(c); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestDisks: what machines store on their hosts is part of the price, rounded
// up to the millionth, and no part of a GPU's.
func TestDisks(t *testing.T) {
	const (
		l4       = `"gpu":{"id":"NVIDIA L4"}`
		endpoint = `"gpu":{"pools":["ADA_24"]}`
		cluster  = `"compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":1,"podCount":4}`
	)
	rates := catalog.Rates{Container: 100_000, Persistent: 100_000, PersistentStopped: 200_000, DefaultDisk: 20}
	gpus, err := catalog.ParseGPUs(decode(t, gpuAnswer))
	if err != nil {
		t.Fatal(err)
	}
	snap := catalog.NewSnapshot(catalog.Lists{GPUs: gpus}, rates, time.Unix(1_700_000_000, 0))
	for _, tt := range []struct{ name, op, after, want string }{
		{"nothing said", "createPod", `{` + l4 + `}`, "0.43274/0.43/1"},
		{"null is nothing said", "createPod", `{` + l4 + `,"disk":null,"mounts":null}`, "0.43274/0.43/1"},
		{"no mount", "createPod", `{` + l4 + `,"disk":20,"mounts":{}}`, "0.43274/0.43/1"},
		{"a network mount is priced by itself", "createPod", `{` + l4 + `,"disk":20,"mounts":{"network":[{"volumeId":"v","path":"/v"}]}}`, "0.43274/0.43/1"},
		{"a month of gigabytes", "createPod", `{` + l4 + `,"disk":730}`, "0.53/0.43/1"},
		{"the largest disk", "createPod", `{` + l4 + `,"disk":65536}`, "9.407534/0.43/1"},
		{"the largest mount, dearer when stopped", "createPod", `{` + l4 + `,"mounts":{"persistent":{"size":65536,"path":"/a"}}}`, "17.955068/0.43/1"},
		{"a mount", "updatePod", `{` + l4 + `,"disk":730,"mounts":{"persistent":{"size":730,"path":"/a"}}}`, "0.63/0.43/1"},
		{"a start", "podAction", `{` + l4 + `,"disk":730,"mounts":{"persistent":{"size":730,"path":"/a"}}}`, "0.63/0.43/1"},
		{"no disk at all", "podAction", `{` + l4 + `,"disk":0}`, "0.43/0.43/1"},
		{"workers", "createEndpoint", `{` + endpoint + `,"disk":730,"workers":{"max":5}}`, "6/1.1/5"},
		{"workers by default", "updateEndpoint", `{` + endpoint + `}`, "3.308219/1.1/3"},
		{"no workers", "updateEndpoint", `{` + endpoint + `,"disk":730,"workers":{"max":0}}`, "0/1.1/0"},
		{"cluster members", "createCluster", `{` + cluster + `,"disk":730,"mounts":{"persistent":{"size":1460,"path":"/a"}}}`, "2.92/0.43/4"},
		{"a disk of another type", "createPod", `{` + l4 + `,"disk":"20"}`, "disk is not a whole number"},
		{"a negative disk", "createPod", `{` + l4 + `,"disk":-20}`, "disk is not a whole number"},
		{"half a disk", "createPod", `{` + l4 + `,"disk":20.5}`, "disk is not a whole number"},
		{"mounts of another type", "createPod", `{` + l4 + `,"mounts":[]}`, "mounts is not an object"},
		{"a mount of another type", "createPod", `{` + l4 + `,"mounts":{"persistent":10}}`, "mounts.persistent is not an object"},
		{"a mount without size", "createPod", `{` + l4 + `,"mounts":{"persistent":{"path":"/a"}}}`, "mounts.persistent.size is not a positive whole number"},
		{"beyond money", "createPod", `{` + l4 + `,"disk":9223372036854775807}`, "the price is out of range: 1 x 9223372036854775807 GB of disk"},
		{"beyond money by workers", "createEndpoint", `{` + endpoint + `,"disk":9000000000,"workers":{"max":9}}`, "the price is out of range: 9 x 9000000000 GB of disk"},
		{"no price of the GPU", "createPod", `{"gpu":{"id":"FREE"},"disk":"x"}`, `price of GPU type "FREE" in the SECURE cloud is not plausible`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after, _ := decode(t, tt.after).(map[string]any)
			if got := shown(price(snap, tt.op, "start", after)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	c := price(snap, "createPod", "start", decode(t, `{`+l4+`,"mounts":{"persistent":{"size":100,"path":"/a"}}}`).(map[string]any))
	if want := "1 x NVIDIA L4 (SECURE) at 0.43, 1 x 20 GB of disk at 0.1 per GB and month, 1 x 100 GB of persistent storage at 0.1 per GB and month"; c.Basis != want {
		t.Errorf("basis: got %q, want %q", c.Basis, want)
	}
}

// price is the price of a call whose body names an action.
func price(snap *catalog.Snapshot, id, action string, after map[string]any) catalog.Cost {
	row, _ := operation.Lookup(id)
	return snap.Price(id, row.EffectiveVerb(map[string]any{"action": action}), after)
}

// shown is a price as hourly/perGPU/gpus, or the reason why there is none.
func shown(c catalog.Cost) string {
	if !c.Known {
		return c.Reason
	}
	return c.Hourly.String() + "/" + c.PerGPU.String() + "/" + itoa(c.GPUs)
}

// TestInstancesInTheCatalog: a platform may list instances where we send and
// price bare flavours.
func TestInstancesInTheCatalog(t *testing.T) {
	at := func(usd catalog.Money) catalog.Price { return catalog.Price{Known: usd > 0, PerHour: usd} }
	snap := catalog.NewSnapshot(catalog.Lists{CPUs: []catalog.CPU{
		{ID: "cpu3c-2-4", Secure: at(40_000), Serverless: at(30_000)},
		{ID: "cpu3c-4-8", Secure: at(50_000)},
		{ID: "cpu5c", Secure: at(60_000)},
		{ID: "cpu5c-2-4", Secure: at(90_000)},
	}}, catalog.Rates{}, time.Time{})
	for id, want := range map[string]string{
		"cpu3c": "0.1", "cpu3c-2-4": "0.08", "cpu3c-8-16": "0.4", "cpu5c": "0.12", "cpu5c-4-8": "0.24", "cpu4c": "",
	} {
		c := price(snap, "createPod", "start", map[string]any{"cpu": map[string]any{"id": id, "vcpuCount": json.Number("2")}})
		if got := c.Hourly.String(); c.Known != (want != "") || c.Known && got != want {
			t.Errorf("%s: got %s (%s), want %q", id, got, c.Reason, want)
		}
	}
	if c, ok := snap.CPU("cpu3c"); !ok || c.Serverless.Known {
		t.Errorf("cpu3c: got %+v, want no serverless price, because one instance has none", c)
	}
}

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }

func TestNilSnapshotPricesNothing(t *testing.T) {
	var snap *catalog.Snapshot
	for _, op := range []string{"createPod", "createEndpoint", "createCluster", "createNetworkVolume", "podAction"} {
		if c := price(snap, op, "start", map[string]any{"gpu": map[string]any{"id": "NVIDIA L4"}, "size": json.Number("10")}); c.Known {
			t.Errorf("%s: got %+v, want an unknown price", op, c)
		}
	}
	if c := price(snap, "listPods", "", nil); !c.Known {
		t.Errorf("listPods: got %+v, want a known price of 0", c)
	}
}

func TestParseRefusesWhatIsNoCatalog(t *testing.T) {
	for name, answer := range map[string]string{
		"array": `[]`, "no list": `{}`, "empty": `{"gpus":[],"cpus":[]}`, "entry": `{"gpus":[1],"cpus":[1]}`,
		"no id": `{"gpus":[{}],"cpus":[{}]}`, "twice": `{"gpus":[{"id":"a"},{"id":"a"}],"cpus":[{"id":"a"},{"id":"a"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := catalog.ParseGPUs(decode(t, answer)); err == nil {
				t.Errorf("ParseGPUs: got %v, want an error", got)
			}
			if got, err := catalog.ParseCPUs(decode(t, answer)); err == nil {
				t.Errorf("ParseCPUs: got %v, want an error", got)
			}
		})
	}
}

func TestParseMoney(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "0.44": "0.44", "12": "12", "1.1e-1": "0.11", "0.0000001": "0.000001", "1000000000": "1000000000",
		"-1": "error", "": "error", "NaN": "error", "1e1000000": "error", "1/3": "error", "0x10": "error", "1e9e": "error",
		"1000000001": "error", "Inf": "error", "+1": "error", "1e-2147483648": "error",
	} {
		got := "error"
		if m, err := catalog.ParseMoney(in); err == nil {
			got = m.String()
		}
		if got != want {
			t.Errorf("ParseMoney(%q): got %s, want %s", in, got, want)
		}
	}
}

func TestDigestFollowsContent(t *testing.T) {
	a, b := testSnapshot(t), testSnapshot(t)
	if diff := cmp.Diff(a.Digest(), b.Digest()); diff != "" {
		t.Errorf("equal lists, digests differ:\n%s", diff)
	}
	c := catalog.NewSnapshot(catalog.Lists{GPUs: oneGPU("0.44")}, catalog.Rates{}, time.Time{})
	d := catalog.NewSnapshot(catalog.Lists{GPUs: oneGPU("0.45")}, catalog.Rates{}, time.Time{})
	if c.Digest() == d.Digest() {
		t.Error("a new price did not change the digest")
	}
	if diff := cmp.Diff([]string{"NVIDIA GeForce RTX 4090", "NVIDIA L4"}, a.PoolMembers("ADA_24")); diff != "" {
		t.Errorf("pool members (-want +got):\n%s", diff)
	}
}
