package translate

import (
	"encoding/json"
	"testing"
)

func TestMachines(t *testing.T) {
	c := newCatalog()
	check := func(gpu string, count, memory, vcpus int64) {
		t.Helper()
		if m, v := c.SmallestMachine(gpu, count); m != memory || v != vcpus {
			t.Errorf("%d x %s: %d GB, %d vCPUs, want %d, %d", count, gpu, m, v, memory, vcpus)
		}
	}
	see := func(operation, text string) {
		t.Helper()
		var body any
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		c.observe(operation, numbers(body))
	}
	check("NVIDIA L4", 2, 100, 24)
	check("NVIDIA NEW", 2, 16, 4)
	see("listPods", `{"pods":[{"gpu":{"id":"NVIDIA L4","count":1,"memory":48,"vcpuCount":14}},{"gpu":{"id":"NVIDIA L4","count":1,"memory":60,"vcpuCount":10}},{"cpu":{"id":"cpu3c"}}]}`)
	check("NVIDIA L4", 1, 48, 10)
	check("NVIDIA L4", 2, 100, 24)
	see("createPod", `{"gpu":{"id":"NVIDIA NEW","count":2,"memory":20,"vcpuCount":6}}`)
	see("createPod", `{"title":"Bad Request"}`)
	see("getEndpoint", `{"gpu":{"id":"NVIDIA NEW","count":2,"memory":1,"vcpuCount":1}}`)
	check("NVIDIA NEW", 2, 20, 6)
}

// numbers makes the numbers of a decoded value json.Numbers, as answers have them.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = numbers(member)
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case float64:
		return Int(int64(v))
	}
	return v
}
