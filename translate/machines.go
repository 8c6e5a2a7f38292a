package translate

import "strings"

// machine is the memory in GB and the number of vCPUs of a pod with GPUs.
type machine struct{ memory, vcpus int64 }

// gpuConfig is a GPU type and the number of GPUs of a pod.
type gpuConfig struct {
	gpu   string
	count int64
}

// maxMachines is the maximum number of configurations remembered.
const maxMachines = 1024

// defaultMachine holds the minimum per GPU that v1 and GraphQL request if the caller sets none.
var defaultMachine = machine{memory: 8, vcpus: 2}

// knownMachines holds the smallest machine per GPU of each GPU type. It applies until a pod of that configuration has
// been observed.
var knownMachines = map[string]machine{
	"AMD Instinct MI300X OAM":        {283, 24},
	"NVIDIA A100 80GB PCIe":          {117, 8},
	"NVIDIA A100-SXM4-80GB":          {125, 16},
	"NVIDIA A40":                     {50, 9},
	"NVIDIA B200":                    {180, 28},
	"NVIDIA GeForce RTX 3090":        {24, 8},
	"NVIDIA GeForce RTX 4080":        {24, 6},
	"NVIDIA GeForce RTX 4090":        {41, 6},
	"NVIDIA GeForce RTX 5090":        {46, 12},
	"NVIDIA H100 80GB HBM3":          {125, 20},
	"NVIDIA H100 NVL":                {94, 16},
	"NVIDIA H100 PCIe":               {188, 16},
	"NVIDIA H200":                    {188, 24},
	"NVIDIA L4":                      {50, 12},
	"NVIDIA L40":                     {94, 8},
	"NVIDIA L40S":                    {62, 16},
	"NVIDIA RTX 2000 Ada Generation": {31, 6},
	"NVIDIA RTX 4000 Ada Generation": {50, 9},
	"NVIDIA RTX 6000 Ada Generation": {62, 14},
	"NVIDIA RTX A4000":               {50, 9},
	"NVIDIA RTX A4500":               {54, 12},
	"NVIDIA RTX A5000":               {25, 9},
	"NVIDIA RTX A6000":               {50, 9},
}

// SmallestMachine returns the smallest memory in GB and the smallest number of vCPUs that have been observed in pods with count GPUs of the
// type gpu. It returns built-in values if no such pod has been observed. The catalog does not have this information.
func (c *Catalog) SmallestMachine(gpu string, count int64) (memory, vcpus int64) {
	c.mu.Lock()
	seen, ok := c.machines[gpuConfig{gpu, count}]
	c.mu.Unlock()
	if ok {
		return seen.memory, seen.vcpus
	}
	known, ok := knownMachines[gpu]
	if !ok {
		known = defaultMachine
	}
	return count * known.memory, count * known.vcpus
}

// observe records the machines of the pods in a v2 response.
func (c *Catalog) observe(operation string, body any) {
	if !strings.HasSuffix(operation, "Pod") && !strings.HasSuffix(operation, "Pods") {
		return
	}
	pods := []any{body}
	if list := Items(body, "pods"); list != nil {
		pods = list
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range pods {
		at := gpuConfig{Text(pod, "gpu", "id"), Whole(pod, "gpu", "count")}
		has := machine{Whole(pod, "gpu", "memory"), Whole(pod, "gpu", "vcpuCount")}
		old, known := c.machines[at]
		switch {
		case at.gpu == "" || has.memory == 0 || has.vcpus == 0 || !known && len(c.machines) == maxMachines:
			continue
		case known:
			has = machine{min(has.memory, old.memory), min(has.vcpus, old.vcpus)}
		}
		c.machines[at] = has
	}
}
