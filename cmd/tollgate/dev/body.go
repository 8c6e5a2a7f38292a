package dev

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// prices is a price list of GPUs or CPUs.
type prices struct {
	GPUs []gpuType `json:"gpus"`
	CPUs []cpuType `json:"cpus"`
}

// gpuType is a GPU type in the price list.
type gpuType struct {
	ID   string  `json:"id"`
	Pool *string `json:"pool"`
}

// cpuType is a CPU flavor in the price list.
type cpuType struct {
	ID   string                 `json:"id"`
	VCPU struct{ Min, Max int } `json:"vcpu"`
	// RAM is the memory per CPU in GB.
	RAM float64 `json:"ramGbPerVcpu"`
}

// kind returns "gpu", "cpu", "lb" or "lb-cpu", depending on the endpoint's hardware and whether it is load-balanced. Each kind has its own
// worker image. The kind of an existing endpoint cannot be changed.
func (e *Endpoint) kind() string {
	gpu := len(e.Config.CPU) == 0
	switch {
	case e.balanced() && gpu:
		return "lb"
	case e.balanced():
		return "lb-cpu"
	case gpu:
		return "gpu"
	default:
		return "cpu"
	}
}

// image returns the image of the endpoint: its own image, the image in images for its kind, or the toolkit's image for a Python version.
func (e *Endpoint) image(images map[string]string, python string) string {
	kind := e.kind()
	if own := cmp.Or(e.Config.Image, images[kind]); own != "" {
		return own
	}
	repository := strings.Replace(e.Toolkit, "_", "/", 1)
	if kind != "gpu" {
		repository += "-" + kind
	}
	version := cmp.Or(e.Config.PythonVersion, python)
	if !slices.Contains([]string{"3.10", "3.11", "3.12", "3.13"}, version) {
		version = "3.12" // there are no images for other versions
	}
	return repository + ":py" + version + "-latest"
}

// digest returns a SHA-256 of the endpoint's configuration. It does not cover environment variables.
func (e *Endpoint) digest(image string) string {
	c := e.Config
	c.Env, c.Template.Env = nil, nil
	text, err := json.Marshal([]any{e.kind(), image, c})
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// defaultTimeout is the platform's default time limit of a job, in milliseconds.
const defaultTimeout = 300000

// body returns the body of a request that creates or changes the endpoint. It contains every setting, so that a change also resets settings
// that the project no longer sets.
func (e *Endpoint) body(image string, list prices) (map[string]any, error) {
	c := &e.Config
	env := maps.Clone(c.Template.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, c.Env)
	workers := map[string]any{"min": c.Workers[0], "max": c.Workers[1], "idleTimeout": c.IdleTimeout}
	body := map[string]any{
		"name": livePrefix + e.name(), "type": "QUEUE", "image": image, "flashboot": "OFF", "env": env, "workers": workers,
		"scaling":       map[string]any{"type": "QUEUE_DELAY", "queueDelay": c.ScalerValue},
		"timeout":       cmp.Or(c.ExecutionTimeout, defaultTimeout),
		"dataCenterIds": append([]string{}, c.DataCenters...), "networkVolumes": append([]string{}, c.Volumes...),
	}
	if c.FlashBoot {
		body["flashboot"] = "FLASHBOOT"
	}
	if e.balanced() || c.ScalerType == "REQUEST_COUNT" {
		body["scaling"] = map[string]any{"type": "REQUEST_COUNT", "requestCount": c.ScalerValue}
	}
	if e.balanced() {
		body["type"] = "LOAD_BALANCER"
	} else if c.ScalerType == "REQUEST_COUNT" {
		delete(workers, "idleTimeout") // the platform refuses idleTimeout for these endpoints
	}
	if len(c.CPU) > 0 {
		return body, c.onCPU(body, list.CPUs)
	}
	body["disk"] = cmp.Or(c.Template.Disk, 64)
	var err error
	body["gpu"], err = c.onGPU(list.GPUs)
	return body, err
}

// shape matches a CPU shape: flavor, number of CPUs, and GB of memory.
var shape = regexp.MustCompile(`^([a-z0-9]+)-([0-9]{1,4})-([0-9]{1,5})$`)

// onCPU adds the settings of a CPU endpoint. CPU endpoints run in one data centre, and the disk size depends on the shape. A shape with
// fewer CPUs than the smallest shape of its flavor is rounded up to that shape.
func (c *Config) onCPU(body map[string]any, types []cpuType) error {
	var shapes []map[string]any
	disk := 0
	for _, name := range c.CPU {
		parts := shape.FindStringSubmatch(name)
		if parts == nil {
			return fmt.Errorf("cpu: %s must be a shape such as cpu3c-2-4", shortened(name))
		}
		i := slices.IndexFunc(types, func(t cpuType) bool { return t.ID == parts[1] })
		if i < 0 {
			return fmt.Errorf("cpu: %s: flavor %s is not in the price list (%s)", name, parts[1], names(types))
		}
		t := types[i]
		n, _ := strconv.Atoi(parts[2]) // matched as digits, like the next
		ram, _ := strconv.Atoi(parts[3])
		n = max(n, t.VCPU.Min)
		if t.VCPU.Max > 0 && n > t.VCPU.Max || float64(ram) > t.RAM*float64(n) {
			return fmt.Errorf("cpu: %s: flavor %s has at most %d CPUs, with %g GB each", name, t.ID, t.VCPU.Max, t.RAM)
		}
		size := 10 * n
		if t.ID == "cpu5c" {
			size = 15 * n
		}
		if disk == 0 || size < disk {
			disk = size
		}
		shapes = append(shapes, map[string]any{"id": t.ID, "vcpuCount": n})
	}
	body["cpu"], body["disk"] = shapes, cmp.Or(c.Template.Disk, disk)
	if len(c.DataCenters) == 0 {
		body["dataCenterIds"] = []string{"EU-RO-1"}
	}
	return nil
}

// names lists flavors for a message.
func names(types []cpuType) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = t.ID
	}
	return strings.Join(list, ", ")
}

// folded converts a name to upper case with underscores, because the toolkit and the price list spell names differently.
func folded(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToUpper(name))
}

// onGPU returns the GPU selection of the endpoint. If the configuration names only some types of a pool, onGPU selects the pool and
// excludes its other types.
func (c *Config) onGPU(types []gpuType) (map[string]any, error) {
	var pools, excluded []string
	whole, named := map[string]bool{}, map[string]bool{}
	wanted := c.GPU
	if len(wanted) == 0 {
		wanted = []string{"ANY"}
	}
	for _, name := range wanted {
		found := false
		for _, t := range types {
			if t.Pool == nil {
				continue
			}
			isPool := folded(name) == "ANY" || folded(name) == folded(*t.Pool)
			if !isPool && folded(name) != folded(t.ID) {
				continue
			}
			found, named[t.ID] = true, true
			whole[*t.Pool] = whole[*t.Pool] || isPool
			if !slices.Contains(pools, *t.Pool) {
				pools = append(pools, *t.Pool)
			}
		}
		if !found {
			return nil, fmt.Errorf("gpu: %s is neither a pool nor a GPU type of a pool in the price list", shortened(name))
		}
	}
	for _, t := range types {
		if t.Pool != nil && slices.Contains(pools, *t.Pool) && !whole[*t.Pool] && !named[t.ID] {
			excluded = append(excluded, t.ID)
		}
	}
	gpu := map[string]any{"pools": pools, "count": c.GPUCount, "minCudaVersion": cmp.Or(c.MinCUDA, "12.8")}
	if len(excluded) > 0 {
		gpu["excludedTypes"] = excluded
	}
	return gpu, nil
}

// shortened shortens a text for a message.
func shortened(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "..."
	}
	return s
}
