package platform

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCatalogRecords(t *testing.T) {
	r := newRig(t, Options{})
	g := r.want(200, "GET", "/v2/catalog/gpus/NVIDIA%20GeForce%20RTX%204090", "")
	want := map[string]any{
		"id": "NVIDIA GeForce RTX 4090", "name": "RTX 4090", "pool": "ADA_24", "manufacturer": "NVIDIA", "memory": 24.0,
		"secure": true, "community": true, "price": map[string]any{"secure": 0.44, "community": 0.31, "serverless": 1.1},
		"maxCount": map[string]any{"secure": 8.0, "community": 4.0},
	}
	if diff := cmp.Diff(want, g.body); diff != "" {
		t.Errorf("GPU type (-want +got):\n%s", diff)
	}
	a30 := r.want(200, "GET", "/v2/catalog/gpus/NVIDIA%20A30", "")
	if _, there := a30.at("price").(map[string]any)["serverless"]; there || a30.at("pool") != nil || a30.at("secure") != false {
		t.Errorf("a type in no pool and not on SECURE: got %s", a30.raw)
	}
	cpu := r.want(200, "GET", "/v2/catalog/cpus/cpu3c-2-4", "")
	want = map[string]any{
		"id": "cpu3c", "name": "Compute-Optimized 3", "group": "Compute-Optimized", "vcpu": map[string]any{"min": 2.0, "max": 32.0},
		"ramGbPerVcpu": 2.0, "price": map[string]any{"securePerVcpu": 0.04, "serverlessPerVcpu": 0.03},
	}
	if diff := cmp.Diff(want, cpu.body); diff != "" {
		t.Errorf("CPU type (-want +got):\n%s", diff)
	}
	for path, want := range map[string]int{"gpus": 45, "cpus": 4, "datacenters": 31} {
		key := strings.Replace(path, "datacenters", "dataCenters", 1)
		if list, _ := r.want(200, "GET", "/v2/catalog/"+path, "").at(key).([]any); len(list) != want {
			t.Errorf("%s: got %d entries, want %d", path, len(list), want)
		}
	}
	for _, path := range []string{"gpus/nope", "cpus/nope", "cpus/cpu9-2-4", "datacenters/nope"} {
		r.want(404, "GET", "/v2/catalog/"+path, "")
	}
}

func TestCatalogParameters(t *testing.T) {
	tests := []struct {
		target string
		status int
	}{
		{"gpus?include=AVAILABILITY&product=POD", 200},
		{"gpus?include=AVAILABILITY&product=POD,CLUSTER", 200},
		{"gpus?include=AVAILABILITY&product=POD,NOTHING", 422},
		{"gpus?include=AVAILABILITY&product=", 422},
		{"cpus?include=AVAILABILITY&product=POD,SERVERLESS", 200},
		{"gpus?include=AVAILABILITY", 400},
		{"gpus?product=POD", 400},
		{"gpus?count=2", 400},
		{"gpus?cloud=SECURE", 400},
		{"gpus?countryCodes=US", 400},
		{"gpus?minCudaVersion=12", 400},
		{"gpus?include=NOTHING", 422},
		{"gpus?include=AVAILABILITY&product=NOTHING", 422},
		{"gpus?include=AVAILABILITY&product=POD&count=0", 422},
		{"gpus?include=AVAILABILITY&product=POD&cloud=ALL", 422},
		{"gpus?include=AVAILABILITY&product=POD&countryCodes=us", 422},
		{"gpus?include=AVAILABILITY&product=POD&countryCodes=US,", 422},
		{"gpus?include=AVAILABILITY&product=POD&cudaVersions=12", 422},
		{"gpus?include=AVAILABILITY&product=POD&minCudaVersion=12", 200},
		{"gpus?include=AVAILABILITY&product=POD&minCudaVersion=x", 422},
		{"gpus?include=AVAILABILITY&product=POD&cudaVersions=12.8&minCudaVersion=12.4", 400},
		{"gpus/NVIDIA%20L4?product=POD", 400},
		{"cpus?include=AVAILABILITY&product=SERVERLESS&vcpuCount=4", 200},
		{"cpus?include=AVAILABILITY&product=CLUSTER", 422},
		{"cpus?include=AVAILABILITY&product=POD&vcpuCount=3", 422},
		{"cpus?vcpuCount=4", 400},
		{"datacenters?include=GPU_AVAILABILITY,CPU_AVAILABILITY", 200},
		{"datacenters?include=AVAILABILITY", 422},
		{"datacenters?regions=MOON", 422},
		{"datacenters?globalNetwork=yes", 422},
		{"templates?source=verified", 200},
		{"templates?source=all", 422},
	}
	r := newRig(t, Options{})
	for _, tt := range tests {
		if a := r.call("GET", "/v2/catalog/"+tt.target, ""); a.status != tt.status {
			t.Errorf("%s: got %d, want %d: %s", tt.target, a.status, tt.status, a.raw[:min(len(a.raw), 200)])
		}
	}
}

func TestAvailability(t *testing.T) {
	r := newRig(t, Options{})
	const l4 = "/v2/catalog/gpus/NVIDIA%20L4?include=AVAILABILITY&product=POD"
	first := r.catalog.gpus["NVIDIA L4"].DataCenters[0]
	for _, tt := range []struct {
		total int
		want  string
	}{{64, "HIGH"}, {8, "HIGH"}, {-1, "HIGH"}, {0, "NONE"}} {
		if err := r.SetStock("NVIDIA L4", "", "", tt.total); err != nil {
			t.Fatal(err)
		}
		if got := r.want(200, "GET", l4+"&count=8", "").text("dataCenters.0.availability"); got != tt.want {
			t.Errorf("stock %d of %s for 8: got %s, want %s", tt.total, first, got, tt.want)
		}
	}
	if got := r.want(200, "GET", l4, "").text("cudaVersions.0.version"); got == "" {
		t.Error("a full type lists its CUDA versions as not available, got none")
	}
	if got := r.want(200, "GET", l4, "").at("cudaVersions.0.available"); got != false {
		t.Errorf("cudaVersions[0].available of a full type: got %v", got)
	}
	away := r.want(200, "GET", l4+"&countryCodes=ZZ", "")
	if away.text("availability") != "NONE" || away.at("dataCenters") != nil {
		t.Errorf("nowhere: got %s", away.raw)
	}
	if got := r.want(200, "GET", "/v2/catalog/gpus?include=AVAILABILITY&product=POD&countryCodes=ZZ", "").raw; got != `{"gpus":[]}` {
		t.Errorf("list for a country with nothing: got %s", got)
	}
	mi := r.want(200, "GET", "/v2/catalog/gpus/AMD%20Instinct%20MI300X%20OAM?include=AVAILABILITY&product=POD", "")
	if mi.at("cudaVersions") != nil || mi.at("dataCenters") == nil {
		t.Errorf("an AMD type: got %s", mi.raw)
	}
	narrowed := r.want(200, "GET", l4+"&minCudaVersion=12.10", "")
	if got, _ := narrowed.at("cudaVersions").([]any); len(got) != 1 || narrowed.text("cudaVersions.0.version") != "13.0" {
		t.Errorf("12.10 is above 12.8: got %v", got)
	}
	levels := map[int]string{10: "HIGH", 6: "MEDIUM", 2: "LOW", 0: "NONE"}
	for free, want := range levels {
		if got := (&stock{Total: 10, Used: 10 - free}).level(1); got != want {
			t.Errorf("%d of 10 free: got %s, want %s", free, got, want)
		}
	}
}

func TestDataCenterFilters(t *testing.T) {
	r := newRig(t, Options{})
	ids := func(query string) (out []string) {
		list, _ := r.want(200, "GET", "/v2/catalog/datacenters?"+query, "").at("dataCenters").([]any)
		for _, v := range list {
			id, _ := v.(map[string]any)["id"].(string)
			out = append(out, id)
		}
		return out
	}
	tests := []struct {
		query string
		want  []string
	}{
		{"regions=ASIA,OCEANIA", []string{"AP-JP-1", "OC-AU-1"}},
		{"networkVolumeTypes=STANDARD,HIGH_PERFORMANCE&regions=EUROPE", []string{"EU-RO-1", "EUR-NO-1"}},
		{"compliance=ITAR,FISMA_HIGH", []string{"US-MD-1"}},
		{"compliance=GDPR,RENEWABLE&globalNetwork=false", []string{"EUR-IS-1", "EUR-IS-3", "EUR-NO-1"}},
		{"compliance=HITRUST", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ids(tt.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
	}
	one := r.want(200, "GET", "/v2/catalog/datacenters/EU-RO-1?include=CPU_AVAILABILITY", "")
	if one.text("cpuAvailability.0.id") != "cpu3c" || one.at("gpuAvailability") != nil {
		t.Errorf("include: got %s", one.raw)
	}
}

func TestPrices(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newPod(gpuPod)
	if err := r.SetPrice("NVIDIA GeForce RTX 4090", Price{Secure: 1.5, Community: 1}); err != nil {
		t.Fatal(err)
	}
	if got := r.want(200, "GET", "/v2/pods/"+id, "").at("cost"); got != 0.44 {
		t.Errorf("a running pod's cost moved with the list price: %v", got)
	}
	if got := r.want(201, "POST", "/v2/pods", gpuPod).at("cost"); got != 1.5 {
		t.Errorf("a new pod's cost: got %v, want 1.5", got)
	}
	community := strings.Replace(gpuPod, `"name"`, `"cloud":"COMMUNITY","name"`, 1)
	if got := r.want(201, "POST", "/v2/pods", community).at("cost"); got != 1.0 {
		t.Errorf("on COMMUNITY: got %v, want 1", got)
	}
	if r.SetPrice("nope", Price{}) == nil {
		t.Error("a price was set for a type that is none")
	}
}

func TestSSHKeys(t *testing.T) {
	r := newRig(t, Options{})
	if got := r.want(200, "GET", "/v2/account/ssh-keys", "").raw; got != `{"keys":[]}` {
		t.Errorf("at the start: got %s", got)
	}
	r.want(200, "PUT", "/v2/account/ssh-keys", `{"keys":["ssh-ed25519 AAAA me@home","ecdsa-sha2-nistp256 BBBB"]}`)
	if got := r.want(200, "GET", "/v2/account/ssh-keys", "").raw; got != `{"keys":["ssh-ed25519 AAAA me@home","ecdsa-sha2-nistp256 BBBB"]}` {
		t.Errorf("after PUT: got %s", got)
	}
	for _, body := range []string{
		`{}`, `{"keys":null}`, `{"keys":["rsa AAAA"]}`, `{"keys":["ssh-rsa"]}`, `{"keys":["ssh- AAAA"]}`, `{"keys":["ssh-rsa  AAAA"]}`,
		`{"keys":["ssh-rsa AAAA a\nb"]}`, `{"keys":[1]}`, `{"keys":[],"more":1}`, `[]`,
	} {
		r.want(422, "PUT", "/v2/account/ssh-keys", body)
	}
	r.want(200, "PUT", "/v2/account/ssh-keys", `{"keys":[]}`)
	denied := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey, Clouds: []string{"SECURE"}, DeniedGPUs: []string{"NVIDIA L4"}}}})
	denied.want(403, "POST", "/v2/pods", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"}}`)
	denied.want(403, "POST", "/v2/pods", strings.Replace(gpuPod, `"name"`, `"cloud":"COMMUNITY","name"`, 1))
	denied.want(201, "POST", "/v2/pods", gpuPod)
}
