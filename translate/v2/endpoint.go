package v2

import "github.com/tollgate-dev/tollgate/translate"

// Endpoint is a view of a serverless endpoint, or of the body of a request that creates or updates an endpoint.
type Endpoint struct{ Container }

// EndpointOf returns a view of a decoded endpoint.
func EndpointOf(body any) Endpoint { return Endpoint{ContainerOf(body)} }

// NewEndpoint returns an empty body to write to.
func NewEndpoint() Endpoint { return Endpoint{Container{NewObject()}} }

// Types, scalers and Flashboot modes of endpoints.
const (
	Queue         = "QUEUE"
	LoadBalancer  = "LOAD_BALANCER"
	ByDelay       = "QUEUE_DELAY"
	ByCount       = "REQUEST_COUNT"
	FlashbootOff  = "OFF"
	FlashbootOn   = "FLASHBOOT"
	FlashbootPrio = "PRIORITY_FLASHBOOT"
)

// AsTemplate returns the endpoint's container settings as a serverless template with the given id.
func (e Endpoint) AsTemplate(id string) Template {
	t := NewTemplate()
	t.SetServerless(true)
	t.SetCategory("NVIDIA")
	if e.IsCPU() {
		t.SetCategory("CPU")
	}
	for _, name := range [...]string{"name", "image", "args", "entrypoint", "cmd", "disk", "ports", "env", "registry"} {
		if value := e.at(name); value != nil {
			t.set(value, name)
		}
	}
	t.SetID(id)
	return t
}

// Type returns QUEUE or LOAD_BALANCER.
func (e Endpoint) Type() string { return e.text("type") }

// SetType sets QUEUE or LOAD_BALANCER.
func (e Endpoint) SetType(kind string) { e.set(kind, "type") }

// SetTemplateID sets the template whose settings the endpoint copies.
func (e Endpoint) SetTemplateID(id string) { e.set(id, "templateId") }

// IsCPU reports whether the endpoint runs on CPU flavours.
func (e Endpoint) IsCPU() bool { return len(e.items("cpu")) > 0 }

// CPUs returns the CPU instances in order.
func (e Endpoint) CPUs() []CPU {
	list := make([]CPU, 0, len(e.items("cpu")))
	for _, item := range e.items("cpu") {
		list = append(list, CPU{
			ID: translate.Text(item, "id"), VCPUs: translate.Whole(item, "vcpuCount"), Memory: translate.Whole(item, "memory"),
		})
	}
	return list
}

// Instances returns the names of the CPU instances in order.
func (e Endpoint) Instances() (names []string) {
	for _, c := range e.CPUs() {
		names = append(names, c.Instance())
	}
	return names
}

// SetCPUs sets the CPU instances. Their memory follows from the flavour.
func (e Endpoint) SetCPUs(list []CPU) {
	items := make([]any, len(list))
	for i, c := range list {
		items[i] = map[string]any{"id": c.ID, "vcpuCount": translate.Int(c.VCPUs)}
	}
	e.set(items, "cpu")
}

// CPU is one kind of CPU instance of an endpoint.
type CPU struct {
	// ID is the flavour.
	ID    string
	VCPUs int64
	// Memory is in GB.
	Memory int64
}

// Instance returns the id of the instance in the legacy APIs, such as "cpu5c-4-8".
func (c CPU) Instance() string {
	return c.ID + "-" + translate.Int(c.VCPUs).String() + "-" + translate.Int(c.Memory).String()
}

// Pools returns the GPU pools.
func (e Endpoint) Pools() []string { return e.texts("gpu", "pools") }

// Excluded returns the GPU types that are excluded from the pools.
func (e Endpoint) Excluded() []string { return e.texts("gpu", "excludedTypes") }

// SetPools sets the GPU pools.
func (e Endpoint) SetPools(pools []string) { e.set(translate.List(pools), "gpu", "pools") }

// SetExcluded sets the GPU types that are excluded from the pools.
func (e Endpoint) SetExcluded(types []string) { e.set(translate.List(types), "gpu", "excludedTypes") }

// GPUCount returns the number of GPUs per worker.
func (e Endpoint) GPUCount() int64 { return e.whole("gpu", "count") }

// SetGPUCount sets the number of GPUs per worker.
func (e Endpoint) SetGPUCount(n int64) { e.set(translate.Int(n), "gpu", "count") }

// CUDAVersions returns the allowed CUDA versions of hosts.
func (e Endpoint) CUDAVersions() []string { return e.texts("gpu", "allowedCudaVersions") }

// SetCUDAVersions sets the allowed CUDA versions of hosts.
func (e Endpoint) SetCUDAVersions(list []string) {
	e.set(translate.List(list), "gpu", "allowedCudaVersions")
}

// MinCUDA returns the minimum CUDA version of hosts.
func (e Endpoint) MinCUDA() string { return e.text("gpu", "minCudaVersion") }

// SetMinCUDA sets the minimum CUDA version of hosts.
func (e Endpoint) SetMinCUDA(version string) { e.set(version, "gpu", "minCudaVersion") }

// DataCenters returns the data centres; empty allows any.
func (e Endpoint) DataCenters() []string { return e.texts("dataCenterIds") }

// SetDataCenters sets the data centres.
func (e Endpoint) SetDataCenters(ids []string) { e.set(translate.List(ids), "dataCenterIds") }

// Volumes returns the ids of the network volumes.
func (e Endpoint) Volumes() []string { return e.texts("networkVolumes") }

// SetVolumes sets the ids of the network volumes.
func (e Endpoint) SetVolumes(ids []string) { e.set(translate.List(ids), "networkVolumes") }

// WorkersMin returns the minimum number of workers.
func (e Endpoint) WorkersMin() int64 { return e.whole("workers", "min") }

// SetWorkersMin sets the minimum number of workers.
func (e Endpoint) SetWorkersMin(n int64) { e.set(translate.Int(n), "workers", "min") }

// WorkersMax returns the maximum number of workers.
func (e Endpoint) WorkersMax() int64 { return e.whole("workers", "max") }

// SetWorkersMax sets the maximum number of workers.
func (e Endpoint) SetWorkersMax(n int64) { e.set(translate.Int(n), "workers", "max") }

// IdleTimeout returns the idle timeout of a worker in seconds, or 0 if unknown.
func (e Endpoint) IdleTimeout() int64 { return e.whole("workers", "idleTimeout") }

// SetIdleTimeout sets the idle timeout of a worker in seconds.
func (e Endpoint) SetIdleTimeout(seconds int64) {
	e.set(translate.Int(seconds), "workers", "idleTimeout")
}

// Scaler returns QUEUE_DELAY or REQUEST_COUNT.
func (e Endpoint) Scaler() string { return e.text("scaling", "type") }

// ScalerValue returns the value of the scaler, rounded up: a delay in seconds or a number of requests.
func (e Endpoint) ScalerValue() int64 {
	for _, v := range [...]any{e.at("scaling", "queueDelay"), e.at("scaling", "requestCount")} {
		if n, ok := translate.Ceil(v); ok {
			return n
		}
	}
	return 0
}

// SetScaling sets the type and the value of the scaler.
func (e Endpoint) SetScaling(kind string, value int64) {
	member := "queueDelay"
	if kind == ByCount {
		member = "requestCount"
	}
	e.set(map[string]any{"type": kind, member: translate.Int(value)}, "scaling")
}

// Timeout returns the execution timeout in milliseconds.
func (e Endpoint) Timeout() int64 { return e.whole("timeout") }

// SetTimeout sets the execution timeout in milliseconds.
func (e Endpoint) SetTimeout(ms int64) { e.set(translate.Int(ms), "timeout") }

// Flashboot returns OFF, FLASHBOOT or PRIORITY_FLASHBOOT.
func (e Endpoint) Flashboot() string { return e.text("flashboot") }

// SetFlashboot sets OFF, FLASHBOOT or PRIORITY_FLASHBOOT.
func (e Endpoint) SetFlashboot(mode string) { e.set(mode, "flashboot") }

// CreatedAt returns the creation time (RFC 3339).
func (e Endpoint) CreatedAt() string { return e.text("createdAt") }
