package v1

import (
	"regexp"
	"strings"
)

// v1Names maps locations in v2 bodies to the v1 fields they came from. Array
// positions are left out. A location not listed is looked up by its parents.
var v1Names = map[string]string{
	"$.image":                   "imageName",
	"$.disk":                    "containerDiskInGb",
	"$.registry":                "containerRegistryAuthId",
	"$.entrypoint":              "dockerEntrypoint",
	"$.cmd":                     "dockerStartCmd",
	"$.args":                    "dockerStartCmd",
	"$.cloud":                   "cloudType",
	"$.gpu.id":                  "gpuTypeIds",
	"$.gpu.pools":               "gpuTypeIds",
	"$.gpu.excludedTypes":       "gpuTypeIds",
	"$.gpu.count":               "gpuCount",
	"$.gpu.allowedCudaVersions": "allowedCudaVersions",
	"$.gpu.minCudaVersion":      "minCudaVersion",
	"$.gpu.minRamPerGpu":        "minRAMPerGPU",
	"$.gpu.minVcpuCountPerGpu":  "minVCPUPerGPU",
	"$.gpu":                     "gpuTypeIds",
	"$.cpu.id":                  "cpuFlavorIds",
	"$.cpu.vcpuCount":           "vcpuCount",
	"$.cpu":                     "cpuFlavorIds",
	"$.mounts.persistent.size":  "volumeInGb",
	"$.mounts.persistent.path":  "volumeMountPath",
	"$.mounts.persistent":       "volumeInGb",
	"$.mounts.network.path":     "volumeMountPath",
	"$.mounts.network":          "networkVolumeId",
	"$.workers.min":             "workersMin",
	"$.workers.max":             "workersMax",
	"$.workers.idleTimeout":     "idleTimeout",
	"$.scaling.type":            "scalerType",
	"$.scaling":                 "scalerValue",
	"$.timeout":                 "executionTimeoutMs",
	"$.networkVolumes":          "networkVolumeIds",
	"$.dataCenter":              "dataCenterId",
	"$.public":                  "isPublic",
	"$.serverless":              "isServerless",
	"$.name":                    "name",
	"$.ports":                   "ports",
	"$.env":                     "env",
	"$.locked":                  "locked",
	"$.globalNetworking":        "globalNetworking",
	"$.templateId":              "templateId",
	"$.dataCenterIds":           "dataCenterIds",
	"$.flashboot":               "flashboot",
	"$.size":                    "size",
	"$.category":                "category",
	"$.username":                "username",
	"$.password":                "password",
	"$.startSsh":                "startSsh",
	"$.startJupyter":            "startJupyter",
}

var arrayPosition = regexp.MustCompile(`\[\d+\]|\.\d+\b`)

// legacyNames puts v1's field names in place of the locations v2's messages
// begin with. Text it does not know is left alone.
func legacyNames(messages []string) []string {
	out := make([]string, len(messages))
	for i, message := range messages {
		location, rest, ok := strings.Cut(message, ":")
		if name := legacyName(location); ok && name != "" {
			message = name + ":" + rest
		}
		out[i] = message
	}
	return out
}

func legacyName(location string) string {
	location = arrayPosition.ReplaceAllString(location, "")
	for location != "" && location != "$" {
		if name, ok := v1Names[location]; ok {
			return name
		}
		dot := strings.LastIndexByte(location, '.')
		if dot < 0 {
			return ""
		}
		location = location[:dot]
	}
	return ""
}
