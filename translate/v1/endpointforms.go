package v1

// The idle timeout of endpoints in seconds, by default and at most.
const (
	defaultIdle = 5
	maxIdle     = 3600
)

var scalers = []string{"QUEUE_DELAY", "REQUEST_COUNT"}

// endpointCreateForm is EndpointCreateInput.
var endpointCreateForm = form{
	{name: "templateId", kind: aText, fate: Mapped, required: true},
	{name: "name", kind: aText, fate: Mapped, maxLen: maxName},
	{name: "computeType", kind: aText, fate: Mapped, enum: computes},
	{name: "gpuTypeIds", kind: aList, fate: Mapped},
	{name: "gpuCount", kind: aWhole, fate: Mapped, atLeast: 1},
	{name: "allowedCudaVersions", kind: aList, fate: Mapped},
	{name: "minCudaVersion", kind: aText, fate: Mapped},
	{name: "cpuFlavorIds", kind: aList, fate: Mapped},
	{name: "vcpuCount", kind: aWhole, fate: Mapped, atLeast: anyInt},
	{name: "workersMin", kind: aWhole, fate: Mapped},
	{name: "workersMax", kind: aWhole, fate: Mapped},
	{name: "idleTimeout", kind: aWhole, fate: Mapped, atLeast: 1, atMost: maxIdle},
	{name: "scalerType", kind: aText, fate: Mapped, enum: scalers},
	{name: "scalerValue", kind: aWhole, fate: Mapped, atLeast: 1},
	{name: "executionTimeoutMs", kind: aWhole, fate: Mapped},
	{name: "flashboot", kind: aFlag, fate: Mapped},
	{name: "dataCenterIds", kind: aList, fate: Mapped},
	{name: "networkVolumeId", kind: aText, fate: Mapped},
	{name: "networkVolumeIds", kind: aList, fate: Mapped},
}

// endpointUpdateForm is EndpointUpdateInput; its defaults do not apply.
var endpointUpdateForm = form{
	{name: "templateId", kind: aText, fate: Mapped},
	{name: "name", kind: aText, fate: Mapped, maxLen: maxName},
	{name: "gpuTypeIds", kind: aList, fate: Mapped},
	{name: "gpuCount", kind: aWhole, fate: Mapped, atLeast: 1},
	{name: "allowedCudaVersions", kind: aList, fate: Mapped},
	{name: "minCudaVersion", kind: aText, fate: Mapped, keepEmpty: true},
	{name: "cpuFlavorIds", kind: aList, fate: Mapped},
	{name: "vcpuCount", kind: aWhole, fate: Mapped, atLeast: anyInt},
	{name: "workersMin", kind: aWhole, fate: Mapped},
	{name: "workersMax", kind: aWhole, fate: Mapped},
	{name: "idleTimeout", kind: aWhole, fate: Mapped, atLeast: 1, atMost: maxIdle},
	{name: "scalerType", kind: aText, fate: Mapped, enum: scalers},
	{name: "scalerValue", kind: aWhole, fate: Mapped, atLeast: 1},
	{name: "executionTimeoutMs", kind: aWhole, fate: Mapped},
	{name: "flashboot", kind: aFlag, fate: Mapped},
	{name: "dataCenterIds", kind: aList, fate: Mapped},
	{name: "networkVolumeId", kind: aText, fate: Mapped, keepEmpty: true},
	{name: "networkVolumeIds", kind: aList, fate: Mapped},
}
