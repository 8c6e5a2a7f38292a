package v1

import (
	"math"
	"slices"
)

// v1's enumerations. The GPU, data centre and CUDA lists of its schema are snapshots and are not enforced; the live
// catalog applies.
var (
	clouds     = []string{"SECURE", "COMMUNITY"}
	computes   = []string{"GPU", "CPU"}
	priorities = []string{"availability", "custom"}
)

// maxName is v1's maximum length of names in characters.
const maxName = 191

// defaultPorts are the ports that v1 opened by default.
var defaultPorts = []string{"8888/http", "22/tcp"}

// Defaults of v1 for pods that v2 does not have.
const (
	defaultName   = "my pod"
	defaultDisk   = 50
	defaultVolume = 20
	defaultPath   = "/workspace"
	defaultRAM    = 8
	defaultVCPU   = 2
)

// anyInt allows negative integers, which v1 treated as absent.
const anyInt = math.MinInt64

// podCreateForm is PodCreateInput of the description with four members that existing clients add.
var podCreateForm = form{
	{name: "name", maxLen: maxName},
	{name: "imageName", v2: "image"},
	{name: "templateId"},
	{name: "computeType", enum: computes},
	{name: "cloudType", v2: "cloud", enum: clouds},
	{name: "gpuTypeIds", v2: "gpu gpu.id", kind: kindStrings},
	{name: "gpuTypePriority", enum: priorities},
	{name: "gpuCount", v2: "gpu.count", kind: kindInteger, atLeast: 1},
	{name: "allowedCudaVersions", v2: "gpu.allowedCudaVersions", kind: kindStrings},
	{name: "minCudaVersion", v2: "gpu.minCudaVersion"},
	{name: "minRAMPerGPU", v2: "gpu.minRamPerGpu", kind: kindInteger, atLeast: anyInt},
	{name: "minVCPUPerGPU", v2: "gpu.minVcpuCountPerGpu", kind: kindInteger, atLeast: anyInt},
	{name: "minDownloadMbps", kind: kindNumber},
	{name: "minUploadMbps", kind: kindNumber},
	{name: "minDiskBandwidthMBps", kind: kindNumber},
	{name: "countryCodes", kind: kindStrings},
	{name: "dataCenterIds", kind: kindStrings},
	{name: "dataCenterPriority", enum: priorities},
	{name: "containerDiskInGb", v2: "disk", kind: kindInteger},
	{name: "volumeInGb", v2: "mounts.persistent mounts.persistent.size", kind: kindInteger},
	{name: "volumeMountPath", v2: "mounts.persistent.path mounts.network.path"},
	{name: "networkVolumeId", v2: "mounts.network"},
	{name: "ports", kind: kindPorts},
	{name: "env", kind: kindEnv},
	{name: "dockerEntrypoint", v2: "entrypoint args", kind: kindStrings},
	{name: "dockerStartCmd", v2: "cmd args", kind: kindStrings},
	{name: "dockerArgs", v2: "args"},
	{name: "containerRegistryAuthId", v2: "registry", keepEmpty: true},
	{name: "globalNetworking", kind: kindBoolean},
	{name: "locked", kind: kindBoolean},
	{name: "interruptible", kind: kindBoolean},
	{name: "supportPublicIp", kind: kindBoolean},
	{name: "cpuFlavorIds", v2: "cpu cpu.id", kind: kindStrings},
	{name: "cpuFlavorPriority", enum: priorities},
	{name: "vcpuCount", v2: "cpu.vcpuCount", kind: kindInteger, atLeast: anyInt},
	{name: "startSsh", kind: kindBoolean, plain: true},
	{name: "startJupyter", kind: kindBoolean, plain: true},
}

// podUpdateForm is PodUpdateInput of the description. Its schema repeats the defaults of PodCreateInput, but they do not apply: an absent
// member stays unchanged.
var podUpdateForm = slices.Concat(form{
	{name: "name", maxLen: maxName},
	{name: "imageName", v2: "image"},
}, containerFields, form{
	{name: "globalNetworking", kind: kindBoolean, plain: true},
	{name: "locked", kind: kindBoolean, plain: true},
})

// containerFields are the fields that template and pod bodies share.
var containerFields = form{
	{name: "containerDiskInGb", v2: "disk", kind: kindInteger},
	{name: "volumeInGb", v2: "mounts.persistent mounts.persistent.size", kind: kindInteger},
	{name: "volumeMountPath", v2: "mounts.persistent.path mounts.network.path"},
	{name: "ports", kind: kindPorts},
	{name: "env", kind: kindEnv},
	{name: "dockerEntrypoint", v2: "entrypoint args", kind: kindStrings},
	{name: "dockerStartCmd", v2: "cmd args", kind: kindStrings},
	{name: "containerRegistryAuthId", v2: "registry", keepEmpty: true},
}
