package contract

import (
	"strings"
	"testing"
)

func catalog(t *testing.T, c *client) {
	t.Helper()
	gpus := c.want(t, 200, "listGpuTypes", "")
	if len(gpus.list("gpus")) == 0 {
		t.Error("no GPU types")
	}
	for _, v := range gpus.list("gpus") {
		m, _ := v.(map[string]any)
		for _, name := range []string{"availability", "dataCenters", "cudaVersions"} {
			if _, there := m[name]; there {
				t.Errorf("%v: %s unasked", m["id"], name)
			}
		}
	}
	one := c.want(t, 200, "getGpuType", "", c.gpu, "?include=AVAILABILITY&product=POD&count=1&cloud=SECURE")
	if one.text("id") != c.gpu || one.text("availability") == "" {
		t.Errorf("getGpuType: got %s", one.body)
	}
	if a := c.want(t, 200, "getGpuType", "", c.gpu, "?include=AVAILABILITY&product=POD&countryCodes=ZZ"); a.text("availability") != "NONE" || a.at("dataCenters") != nil {
		t.Errorf("in a country with nothing: got %s", a.body)
	}
	for query, status := range map[string]int{
		"?product=POD": 400, "?count=2": 400, "?include=AVAILABILITY": 400, "?minCudaVersion=12": 400,
		"?include=AVAILABILITY&product=POD&cudaVersions=12.8&minCudaVersion=12.4": 400,
		"?include=AVAILABILITY&product=POD&cudaVersions=12":                       422,
		"?include=AVAILABILITY&product=POD&countryCodes=usa":                      422,
		"?include=AVAILABILITY&product=CLUSTER&minCudaVersion=12":                 200,
	} {
		c.want(t, status, "listGpuTypes", "", query)
		c.want(t, status, "getGpuType", "", c.gpu, query)
	}
	cpu := c.want(t, 200, "listCpuTypes", "", "?include=AVAILABILITY&product=SERVERLESS&vcpuCount=4").text("cpus.0.id")
	for query, status := range map[string]int{
		"": 200, "?vcpuCount=4": 400, "?include=AVAILABILITY": 400, "?include=AVAILABILITY&product=POD&vcpuCount=3": 422,
	} {
		args := []string{query}
		if query == "" {
			args = nil
		}
		c.want(t, status, "listCpuTypes", "", args...)
		c.want(t, status, "getCpuType", "", append([]string{cpu}, args...)...)
	}
	dc := c.want(t, 200, "listDataCenters", "", "?include=GPU_AVAILABILITY,CPU_AVAILABILITY&networkVolumeTypes=STANDARD&globalNetwork=true")
	for _, v := range dc.list("dataCenters") {
		if m, _ := v.(map[string]any); m["globalNetwork"] != true {
			t.Errorf("filtered by globalNetwork: got %v", m["id"])
		}
	}
	c.want(t, 200, "getDataCenter", "", dc.text("dataCenters.0.id"), "?include=GPU_AVAILABILITY")
	for _, source := range []string{"", "?source=official", "?source=verified", "?source=community"} {
		list := c.want(t, 200, "listPublicTemplates", "", strings.Fields(source)...).list("templates")
		if len(list) > 100 {
			t.Errorf("%s: %d templates, want 100 at most", source, len(list))
		}
		for _, v := range list {
			if m, _ := v.(map[string]any); m["public"] != true || m["registry"] != nil {
				t.Errorf("public template: got %v", m)
			}
		}
	}
}
