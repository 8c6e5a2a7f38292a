package v1

import "math"

// v1's closed word lists. The GPU, data centre and CUDA lists of its schema are
// snapshots and not enforced: the live catalog decides.
var (
	clouds     = []string{"SECURE", "COMMUNITY"}
	computes   = []string{"GPU", "CPU"}
	priorities = []string{"availability", "custom"}
)

// maxName is v1's limit for names, in characters.
const maxName = 191

// defaultPorts are the ports v1 opened when none were given.
var defaultPorts = []string{"8888/http", "22/tcp"}

// The defaults v1 applied to pods, which v2 does not have.
const (
	defaultName   = "my pod"
	defaultDisk   = 50
	defaultVolume = 20
	defaultPath   = "/workspace"
	defaultRAM    = 8
	defaultVCPU   = 2
)

// anyInt lets an integer field be negative; v1 read that as absent.
const anyInt = math.MinInt64

// podCreateForm is PodCreateInput and the four keys shipped clients add.
var podCreateForm = form{
	{name: "name", maxLen: maxName},
	{name: "imageName"},
	{name: "templateId"},
	{name: "computeType", enum: computes},
	{name: "cloudType", enum: clouds},
	{name: "gpuTypeIds", kind: kindStrings},
	{name: "gpuTypePriority", handling: emulated, enum: priorities},
	{name: "gpuCount", kind: kindInteger, atLeast: 1},
	{name: "allowedCudaVersions", kind: kindStrings},
	{name: "minCudaVersion"},
	{name: "minRAMPerGPU", kind: kindInteger, atLeast: anyInt},
	{name: "minVCPUPerGPU", kind: kindInteger, atLeast: anyInt},
	{name: "minDownloadMbps", kind: kindNumber, handling: warned},
	{name: "minUploadMbps", kind: kindNumber, handling: warned},
	{name: "minDiskBandwidthMBps", kind: kindNumber, handling: warned},
	{name: "countryCodes", kind: kindStrings, handling: emulated},
	{name: "dataCenterIds", kind: kindStrings},
	{name: "dataCenterPriority", handling: emulated, enum: priorities},
	{name: "containerDiskInGb", kind: kindInteger},
	{name: "volumeInGb", kind: kindInteger},
	{name: "volumeMountPath"},
	{name: "networkVolumeId"},
	{name: "ports", kind: kindPorts},
	{name: "env", kind: kindEnv},
	{name: "dockerEntrypoint", kind: kindStrings},
	{name: "dockerStartCmd", kind: kindStrings},
	{name: "dockerArgs"},
	{name: "containerRegistryAuthId", keepEmpty: true},
	{name: "globalNetworking", kind: kindBoolean},
	{name: "locked", kind: kindBoolean, handling: emulated},
	{name: "interruptible", kind: kindBoolean, handling: refused},
	{name: "supportPublicIp", kind: kindBoolean, handling: warned},
	{name: "cpuFlavorIds", kind: kindStrings},
	{name: "cpuFlavorPriority", handling: emulated, enum: priorities},
	{name: "vcpuCount", kind: kindInteger, atLeast: anyInt},
	{name: "startSsh", kind: kindBoolean},
	{name: "startJupyter", kind: kindBoolean},
}

// podUpdateForm is PodUpdateInput. Its schema repeats the defaults of a create;
// they do not apply: an absent key is unchanged.
var podUpdateForm = form{
	{name: "name", maxLen: maxName},
	{name: "imageName"},
	{name: "containerDiskInGb", kind: kindInteger},
	{name: "volumeInGb", kind: kindInteger},
	{name: "volumeMountPath"},
	{name: "ports", kind: kindPorts},
	{name: "env", kind: kindEnv},
	{name: "dockerEntrypoint", kind: kindStrings},
	{name: "dockerStartCmd", kind: kindStrings},
	{name: "containerRegistryAuthId", keepEmpty: true},
	{name: "globalNetworking", kind: kindBoolean},
	{name: "locked", kind: kindBoolean},
}
