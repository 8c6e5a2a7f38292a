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
	{name: "name", kind: aText, fate: Mapped, maxLen: maxName},
	{name: "imageName", kind: aText, fate: Mapped},
	{name: "templateId", kind: aText, fate: Mapped},
	{name: "computeType", kind: aText, fate: Mapped, enum: computes},
	{name: "cloudType", kind: aText, fate: Mapped, enum: clouds},
	{name: "gpuTypeIds", kind: aList, fate: Mapped},
	{name: "gpuTypePriority", kind: aText, fate: Emulated, enum: priorities},
	{name: "gpuCount", kind: aWhole, fate: Mapped, atLeast: 1},
	{name: "allowedCudaVersions", kind: aList, fate: Mapped},
	{name: "minCudaVersion", kind: aText, fate: Mapped},
	{name: "minRAMPerGPU", kind: aWhole, fate: Mapped, atLeast: anyInt},
	{name: "minVCPUPerGPU", kind: aWhole, fate: Mapped, atLeast: anyInt},
	{name: "minDownloadMbps", kind: aNumber, fate: Warned},
	{name: "minUploadMbps", kind: aNumber, fate: Warned},
	{name: "minDiskBandwidthMBps", kind: aNumber, fate: Warned},
	{name: "countryCodes", kind: aList, fate: Emulated},
	{name: "dataCenterIds", kind: aList, fate: Mapped},
	{name: "dataCenterPriority", kind: aText, fate: Emulated, enum: priorities},
	{name: "containerDiskInGb", kind: aWhole, fate: Mapped},
	{name: "volumeInGb", kind: aWhole, fate: Mapped},
	{name: "volumeMountPath", kind: aText, fate: Mapped},
	{name: "networkVolumeId", kind: aText, fate: Mapped},
	{name: "ports", kind: aPortList, fate: Mapped},
	{name: "env", kind: anEnv, fate: Mapped},
	{name: "dockerEntrypoint", kind: aList, fate: Mapped},
	{name: "dockerStartCmd", kind: aList, fate: Mapped},
	{name: "dockerArgs", kind: aText, fate: Mapped},
	{name: "containerRegistryAuthId", kind: aText, fate: Mapped, keepEmpty: true},
	{name: "globalNetworking", kind: aFlag, fate: Mapped},
	{name: "locked", kind: aFlag, fate: Emulated},
	{name: "interruptible", kind: aFlag, fate: Refused},
	{name: "supportPublicIp", kind: aFlag, fate: Warned},
	{name: "cpuFlavorIds", kind: aList, fate: Mapped},
	{name: "cpuFlavorPriority", kind: aText, fate: Emulated, enum: priorities},
	{name: "vcpuCount", kind: aWhole, fate: Mapped, atLeast: anyInt},
	{name: "startSsh", kind: aFlag, fate: Mapped},
	{name: "startJupyter", kind: aFlag, fate: Mapped},
}

// podUpdateForm is PodUpdateInput. Its schema repeats the defaults of a create;
// they do not apply: an absent key is unchanged.
var podUpdateForm = form{
	{name: "name", kind: aText, fate: Mapped, maxLen: maxName},
	{name: "imageName", kind: aText, fate: Mapped},
	{name: "containerDiskInGb", kind: aWhole, fate: Mapped},
	{name: "volumeInGb", kind: aWhole, fate: Mapped},
	{name: "volumeMountPath", kind: aText, fate: Mapped},
	{name: "ports", kind: aPortList, fate: Mapped},
	{name: "env", kind: anEnv, fate: Mapped},
	{name: "dockerEntrypoint", kind: aList, fate: Mapped},
	{name: "dockerStartCmd", kind: aList, fate: Mapped},
	{name: "containerRegistryAuthId", kind: aText, fate: Mapped, keepEmpty: true},
	{name: "globalNetworking", kind: aFlag, fate: Mapped},
	{name: "locked", kind: aFlag, fate: Mapped},
}
