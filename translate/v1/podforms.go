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
	// minVolume is the smallest volume v2 knows.
	minVolume = 10
)

// anyInt lets an integer field be negative; v1 read that as absent.
const anyInt = math.MinInt64

// podCreateForm is PodCreateInput and the four keys shipped clients add.
var podCreateForm = form{
	{name: "name", kind: text, fate: Mapped, maxLen: maxName},
	{name: "imageName", kind: text, fate: Mapped},
	{name: "templateId", kind: text, fate: Mapped},
	{name: "computeType", kind: text, fate: Mapped, enum: computes},
	{name: "cloudType", kind: text, fate: Mapped, enum: clouds},
	{name: "gpuTypeIds", kind: texts, fate: Mapped},
	{name: "gpuTypePriority", kind: text, fate: Emulated, enum: priorities},
	{name: "gpuCount", kind: whole, fate: Mapped, atLeast: 1},
	{name: "allowedCudaVersions", kind: texts, fate: Mapped},
	{name: "minCudaVersion", kind: text, fate: Mapped},
	{name: "minRAMPerGPU", kind: whole, fate: Mapped, atLeast: anyInt},
	{name: "minVCPUPerGPU", kind: whole, fate: Mapped, atLeast: anyInt},
	{name: "minDownloadMbps", kind: number, fate: Warned},
	{name: "minUploadMbps", kind: number, fate: Warned},
	{name: "minDiskBandwidthMBps", kind: number, fate: Warned},
	{name: "countryCodes", kind: texts, fate: Emulated},
	{name: "dataCenterIds", kind: texts, fate: Mapped},
	{name: "dataCenterPriority", kind: text, fate: Emulated, enum: priorities},
	{name: "containerDiskInGb", kind: whole, fate: Mapped},
	{name: "volumeInGb", kind: whole, fate: Mapped},
	{name: "volumeMountPath", kind: text, fate: Mapped},
	{name: "networkVolumeId", kind: text, fate: Mapped},
	{name: "ports", kind: ports, fate: Mapped},
	{name: "env", kind: env, fate: Mapped},
	{name: "dockerEntrypoint", kind: texts, fate: Mapped},
	{name: "dockerStartCmd", kind: texts, fate: Mapped},
	{name: "dockerArgs", kind: text, fate: Mapped},
	{name: "containerRegistryAuthId", kind: text, fate: Mapped, keepEmpty: true},
	{name: "globalNetworking", kind: flag, fate: Mapped},
	{name: "locked", kind: flag, fate: Emulated},
	{name: "interruptible", kind: flag, fate: Refused},
	{name: "supportPublicIp", kind: flag, fate: Warned},
	{name: "cpuFlavorIds", kind: texts, fate: Mapped},
	{name: "cpuFlavorPriority", kind: text, fate: Emulated, enum: priorities},
	{name: "vcpuCount", kind: whole, fate: Mapped, atLeast: anyInt},
	{name: "startSsh", kind: flag, fate: Mapped},
	{name: "startJupyter", kind: flag, fate: Mapped},
}

// podUpdateForm is PodUpdateInput. Its schema repeats the defaults of a create;
// they do not apply: an absent key is unchanged.
var podUpdateForm = form{
	{name: "name", kind: text, fate: Mapped, maxLen: maxName},
	{name: "imageName", kind: text, fate: Mapped},
	{name: "containerDiskInGb", kind: whole, fate: Mapped},
	{name: "volumeInGb", kind: whole, fate: Mapped},
	{name: "volumeMountPath", kind: text, fate: Mapped},
	{name: "ports", kind: ports, fate: Mapped},
	{name: "env", kind: env, fate: Mapped},
	{name: "dockerEntrypoint", kind: texts, fate: Mapped},
	{name: "dockerStartCmd", kind: texts, fate: Mapped},
	{name: "containerRegistryAuthId", kind: text, fate: Mapped, keepEmpty: true},
	{name: "globalNetworking", kind: flag, fate: Mapped},
	{name: "locked", kind: flag, fate: Mapped},
}
