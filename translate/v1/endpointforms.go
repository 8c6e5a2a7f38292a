package v1

// The defaults v1 applied to endpoints.
const (
	defaultWorkersMax = 3
	defaultIdle       = 5
	maxIdle           = 3600
	defaultScaler     = 4
	defaultTimeoutMs  = 600000
)

var scalers = []string{"QUEUE_DELAY", "REQUEST_COUNT"}

// endpointCreateForm is EndpointCreateInput.
var endpointCreateForm = form{
	{name: "templateId", kind: text, fate: Mapped, required: true},
	{name: "name", kind: text, fate: Mapped, maxLen: maxName},
	{name: "computeType", kind: text, fate: Mapped, enum: computes},
	{name: "gpuTypeIds", kind: texts, fate: Mapped},
	{name: "gpuCount", kind: whole, fate: Mapped, atLeast: 1},
	{name: "allowedCudaVersions", kind: texts, fate: Mapped},
	{name: "minCudaVersion", kind: text, fate: Mapped},
	{name: "cpuFlavorIds", kind: texts, fate: Mapped},
	{name: "vcpuCount", kind: whole, fate: Mapped, atLeast: anyInt},
	{name: "workersMin", kind: whole, fate: Mapped},
	{name: "workersMax", kind: whole, fate: Mapped},
	{name: "idleTimeout", kind: whole, fate: Mapped, atLeast: 1, atMost: maxIdle},
	{name: "scalerType", kind: text, fate: Mapped, enum: scalers},
	{name: "scalerValue", kind: whole, fate: Mapped, atLeast: 1},
	{name: "executionTimeoutMs", kind: whole, fate: Mapped},
	{name: "flashboot", kind: flag, fate: Mapped},
	{name: "dataCenterIds", kind: texts, fate: Mapped},
	{name: "networkVolumeId", kind: text, fate: Mapped},
	{name: "networkVolumeIds", kind: texts, fate: Mapped},
}

// endpointUpdateForm is EndpointUpdateInput; its defaults do not apply.
var endpointUpdateForm = form{
	{name: "templateId", kind: text, fate: Mapped},
	{name: "name", kind: text, fate: Mapped, maxLen: maxName},
	{name: "gpuTypeIds", kind: texts, fate: Mapped},
	{name: "gpuCount", kind: whole, fate: Mapped, atLeast: 1},
	{name: "allowedCudaVersions", kind: texts, fate: Mapped},
	{name: "minCudaVersion", kind: text, fate: Mapped, keepEmpty: true},
	{name: "cpuFlavorIds", kind: texts, fate: Mapped},
	{name: "vcpuCount", kind: whole, fate: Mapped, atLeast: anyInt},
	{name: "workersMin", kind: whole, fate: Mapped},
	{name: "workersMax", kind: whole, fate: Mapped},
	{name: "idleTimeout", kind: whole, fate: Mapped, atLeast: 1, atMost: maxIdle},
	{name: "scalerType", kind: text, fate: Mapped, enum: scalers},
	{name: "scalerValue", kind: whole, fate: Mapped, atLeast: 1},
	{name: "executionTimeoutMs", kind: whole, fate: Mapped},
	{name: "flashboot", kind: flag, fate: Mapped},
	{name: "dataCenterIds", kind: texts, fate: Mapped},
	{name: "networkVolumeId", kind: text, fate: Mapped, keepEmpty: true},
	{name: "networkVolumeIds", kind: texts, fate: Mapped},
}
