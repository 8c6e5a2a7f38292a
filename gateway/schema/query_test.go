package schema_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonicalQuery(t *testing.T) {
	tests := []struct{ name, operation, query, want string }{
		{"nothing", "listPods", ``, ``},
		{"known", "listPods", `includeClusterPods=true`, `includeClusterPods=true`},
		{"other spellings of a boolean", "listPods", `includeClusterPods=True`, `includeClusterPods=true`},
		{"a number for a boolean", "listDataCenters", `globalNetwork=0`, `globalNetwork=false`},
		{"unknown is dropped", "listPods", `includeClusterPods=false&page=2&api_key=x`, `includeClusterPods=false`},
		{"names are case-sensitive", "listPods", `includeclusterpods=true`, ``},
		{"operation without parameters", "getPod", `tail=5`, ``},
		{"header parameters are none of the query", "getPodLogs", `Last-Event-ID=x&tail=5`, `tail=5`},
		{"logs", "getPodLogs", `source=container&tail=0&since=2026-06-01T12:02:03Z`, `since=2026-06-01T12%3A02%3A03Z&source=container&tail=0`},
		{
			"lists", "listGpuTypes", `include=AVAILABILITY&product=POD,SERVERLESS&countryCodes=DE,FR&cudaVersions=12.8,12.9&count=2&cloud=COMMUNITY`,
			`cloud=COMMUNITY&count=2&countryCodes=DE%2CFR&cudaVersions=12.8%2C12.9&include=AVAILABILITY&product=POD%2CSERVERLESS`,
		},
		{"major version", "getGpuType", `include=AVAILABILITY&product=POD&minCudaVersion=12`, `include=AVAILABILITY&minCudaVersion=12&product=POD`},
		{"CPUs", "listCpuTypes", `include=AVAILABILITY&product=POD&vcpuCount=8`, `include=AVAILABILITY&product=POD&vcpuCount=8`},
		{
			"data centers", "listDataCenters", `include=GPU_AVAILABILITY,CPU_AVAILABILITY&regions=EUROPE&compliance=GDPR,HIPAA&globalNetwork=true`,
			`compliance=GDPR%2CHIPAA&globalNetwork=true&include=GPU_AVAILABILITY%2CCPU_AVAILABILITY&regions=EUROPE`,
		},
		{"billing", "listPodBilling", `bucketSize=hour&lastN=24&podId=abc`, `bucketSize=hour&lastN=24&podId=abc`},
		{
			"billing by time", "listBilling", `startTime=2026-06-01T00:00:00Z&endTime=2026-06-02T00:00:00%2B02:00`,
			`endTime=2026-06-02T00%3A00%3A00%2B02%3A00&startTime=2026-06-01T00%3A00%3A00Z`,
		},
		{"templates", "listPublicTemplates", `source=verified`, `source=verified`},
	}
	api := load(t)
	for _, tt := range tests {
		t.Run(tt.operation+"/"+tt.name, func(t *testing.T) {
			query, err := url.ParseQuery(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			got, vs := api.Operation(tt.operation).CanonicalQuery(query)
			if got.Encode() != tt.want || len(vs) > 0 {
				t.Errorf("CanonicalQuery = %q, %v, want %q", got.Encode(), vs, tt.want)
			}
		})
	}
}

func TestCanonicalQueryRefuses(t *testing.T) {
	tests := []struct {
		name, operation, query string
		status                 int
		want                   []string
	}{
		{
			"repeated", "listPods", `includeClusterPods=true&includeClusterPods=true`, http.StatusBadRequest,
			[]string{"query.includeClusterPods: must not be sent more than once"},
		},
		{
			"repeated include", "listGpuTypes", `include=AVAILABILITY&include=AVAILABILITY&product=POD`, http.StatusBadRequest,
			[]string{"query.include: must not be sent more than once"},
		},
		{"no boolean", "listPods", `includeClusterPods=yes`, http.StatusUnprocessableEntity, []string{"query.includeClusterPods: must be true or false"}},
		{"empty boolean", "listPods", `includeClusterPods=`, http.StatusUnprocessableEntity, []string{"query.includeClusterPods: must be true or false"}},
		{"no integer", "getPodLogs", `tail=many`, http.StatusUnprocessableEntity, []string{"query.tail: must be an integer"}},
		{"integer spelled otherwise", "getPodLogs", `tail=1e2`, http.StatusUnprocessableEntity, []string{"query.tail: must be an integer"}},
		{"integer with a sign", "getPodLogs", `tail=%2B5`, http.StatusUnprocessableEntity, []string{"query.tail: must be an integer"}},
		{"minus zero", "getPodLogs", `tail=-0`, http.StatusUnprocessableEntity, []string{"query.tail: must be an integer in plain digits"}},
		{"too large", "getPodLogs", `tail=5001`, http.StatusUnprocessableEntity, []string{"query.tail: must be at most 5000"}},
		{
			"beyond 2^53", "listBilling", `lastN=99999999999999999999`, http.StatusUnprocessableEntity,
			[]string{"query.lastN: must be an integer between -9007199254740991 and 9007199254740991"},
		},
		{"no time", "getPodLogs", `since=yesterday`, http.StatusUnprocessableEntity, []string{"query.since: must be a date-time"}},
		{"no such value", "getPodLogs", `source=kernel`, http.StatusUnprocessableEntity, []string{"query.source: must be one of 'container', 'system'"}},
		{"bad element", "listDataCenters", `regions=EUROPE,MARS`, http.StatusUnprocessableEntity, []string{
			"query.regions[1]: must be one of 'NORTH_AMERICA', 'SOUTH_AMERICA', 'EUROPE', 'ASIA', 'MIDDLE_EAST', 'AFRICA', 'OCEANIA', 'ANTARCTICA', 'UNKNOWN'",
		}},
		{"empty element", "listGpuTypes", `include=AVAILABILITY&product=POD,`, http.StatusUnprocessableEntity, []string{
			"query.product[1]: must be one of 'POD', 'CLUSTER', 'SERVERLESS'",
		}},
		{"list too long", "listGpuTypes", `include=AVAILABILITY,AVAILABILITY&product=POD`, http.StatusUnprocessableEntity, []string{"query.include: must have at most 1 elements"}},
		{"country code", "listGpuTypes", `include=AVAILABILITY&product=POD&countryCodes=de`, http.StatusUnprocessableEntity, []string{"query.countryCodes[0]: must match the pattern ^[A-Z]{2}$"}},
		{"include without product", "listGpuTypes", `include=AVAILABILITY`, http.StatusBadRequest, []string{"query.include: requires 'product'"}},
		{"filters without include", "getGpuType", `product=POD&count=2&cloud=SECURE&countryCodes=DE&minCudaVersion=12`, http.StatusBadRequest, []string{
			"query.cloud: requires 'include'",
			"query.count: requires 'include'",
			"query.countryCodes: requires 'include'",
			"query.minCudaVersion: requires 'include'",
			"query.product: requires 'include'",
		}},
		{"both CUDA filters", "listGpuTypes", `include=AVAILABILITY&product=POD&cudaVersions=12.8&minCudaVersion=12`, http.StatusBadRequest, []string{
			"query.cudaVersions: cannot be combined with 'minCudaVersion'",
		}},
		{"no power of two", "getCpuType", `include=AVAILABILITY&product=POD&vcpuCount=6`, http.StatusUnprocessableEntity, []string{"query.vcpuCount: must be a power of two"}},
		{"two time ranges", "listClusterBilling", `lastN=3&endTime=2026-06-01T00:00:00Z`, http.StatusBadRequest, []string{
			"query.lastN: cannot be combined with 'startTime' or 'endTime'",
		}},
	}
	api := load(t)
	for _, tt := range tests {
		t.Run(tt.operation+"/"+tt.name, func(t *testing.T) {
			query, err := url.ParseQuery(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			out, vs := api.Operation(tt.operation).CanonicalQuery(query)
			if out != nil {
				t.Errorf("CanonicalQuery = %v beside violations, want nil", out)
			}
			if diff := cmp.Diff(tt.want, lines(vs)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			for _, v := range vs {
				if v.Status != tt.status || v.Pointer != "" {
					t.Errorf("%v has status %d and pointer %q, want %d and none", v, v.Status, v.Pointer, tt.status)
				}
			}
		})
	}
}

func TestValidPathParam(t *testing.T) {
	tests := []struct {
		operation, name, value string
		want                   bool
	}{
		{"getPod", "id", "xedezhzb9la3ye", true},
		{"getPod", "id", "A_b-9", true},
		{"getPod", "id", strings.Repeat("x", 64), true},
		{"getPod", "id", strings.Repeat("x", 65), false},
		{"getPod", "id", "", false},
		{"getPod", "id", "a b", false},
		{"getPod", "id", "a.b", false},
		{"getPod", "id", "..", false},
		{"getPod", "id", "a/b", false},
		{"getPod", "id", "a%2fb", false},
		{"getPod", "id", "a\n", false},
		{"getPod", "id", "é", false},
		{"getPod", "pod", "x", false},
		{"listPods", "id", "x", false},
		{"getWorkerLogs", "workerId", "w1", true},
		{"getWorkerLogs", "workerId", "w/1", false},
		{"getGpuType", "id", "NVIDIA GeForce RTX 4090", true},
		{"getGpuType", "id", "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", true},
		{"getGpuType", "id", "Tesla V100-PCIE-16GB", true},
		{"getGpuType", "id", "..", false},
		{"getGpuType", "id", ".", false},
		{"getGpuType", "id", " NVIDIA", false},
		{"getGpuType", "id", "NVIDIA ", false},
		{"getGpuType", "id", "a/b", false},
		{"getGpuType", "id", `a\b`, false},
		{"getGpuType", "id", "a?b", false},
		{"getGpuType", "id", "a#b", false},
		{"getGpuType", "id", "a%b", false},
		{"getGpuType", "id", "a\x00b", false},
		{"getGpuType", "id", "a\n", false},
		{"getGpuType", "id", strings.Repeat("x", 128), true},
		{"getGpuType", "id", strings.Repeat("x", 129), false},
		{"getDataCenter", "id", "EUR-IS-2", true},
		{"getCpuType", "id", "cpu3c-2-4", true},
	}
	api := load(t)
	for _, tt := range tests {
		if got := api.Operation(tt.operation).ValidPathParam(tt.name, tt.value); got != tt.want {
			t.Errorf("%s: ValidPathParam(%q, %q) = %v, want %v", tt.operation, tt.name, tt.value, got, tt.want)
		}
	}
}
