package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Port numbers above highestPort are no real ports: from symmetricPort on they
// ask for any one port that is the same inside and outside.
const (
	highestPort   = 65535
	symmetricPort = 70001
	lastPort      = 99999
)

// checkPorts: a port is number/protocol.
func checkPorts(body map[string]any, report reporter) {
	for i, item := range list(body, "ports") {
		s, _ := item.(string)
		number, protocol, _ := strings.Cut(s, "/")
		n, ok := index(number)
		switch {
		case protocol != "http" && protocol != "tcp", !ok, n < 1, n > lastPort:
			report("must be a port and a protocol, '<number>/http' or '<number>/tcp'", "ports", i)
		case n > highestPort && n < symmetricPort:
			report("must have a port of at most "+strconv.Itoa(highestPort), "ports", i)
		case n >= symmetricPort && protocol != "tcp":
			report("must use tcp to ask for equal ports inside and outside", "ports", i)
		}
	}
}

// checkEnvironment: a variable's name is not empty and has no equals sign, so
// that no name can smuggle in the value of another.
func checkEnvironment(body map[string]any, report reporter) {
	for name := range object(body, "env") {
		if name == "" || strings.ContainsRune(name, '=') {
			report("the name of an environment variable must not be empty or contain '='", "env", name)
		}
	}
}

// checkIdentifiers: what names something elsewhere is not empty and has no
// control characters.
func checkIdentifiers(body map[string]any, report reporter) {
	const fault = "must name something, without control characters"
	one := func(value any, tokens ...any) {
		if unnamed(value) {
			report(fault, slices.Clone(tokens)...)
		}
	}
	many := func(items []any, tokens ...any) {
		for i, item := range items {
			if unnamed(item) {
				report(fault, append(slices.Clone(tokens), i)...)
			}
		}
	}
	for _, name := range []string{"templateId", "dataCenter", "image", "imageName", "dataCenterId", "cpuFlavorId"} {
		one(body[name], name)
	}
	many(list(body, "dataCenterIds"), "dataCenterIds")
	many(list(body, "networkVolumes"), "networkVolumes")
	gpu := object(body, "gpu")
	one(gpu["id"], "gpu", "id")
	many(list(gpu, "pools"), "gpu", "pools")
	many(list(gpu, "excludedTypes"), "gpu", "excludedTypes")
	one(object(body, "cpu")["id"], "cpu", "id")
	one(object(body, "compute")["gpuTypeId"], "compute", "gpuTypeId")
	for i, item := range list(object(body, "mounts"), "network") {
		mount, _ := item.(map[string]any)
		one(mount["volumeId"], "mounts", "network", i, "volumeId")
	}
}

// unnamed reports whether a value is a string that names nothing.
func unnamed(value any) bool {
	s, ok := value.(string)
	return ok && (s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }))
}

// checkOneMount: host storage and a network volume exclude each other.
func checkOneMount(body map[string]any, report reporter) {
	mounts := object(body, "mounts")
	if has(mounts, "persistent") && len(list(mounts, "network")) > 0 {
		report("must use one kind of mount, 'persistent' or 'network'", "mounts")
	}
}

// checkMountRemoval: a mount cannot be taken away.
func checkMountRemoval(body map[string]any, report reporter) {
	if mounts := object(body, "mounts"); has(mounts, "network") && len(list(mounts, "network")) == 0 {
		report("must not be empty, a mount cannot be removed", "mounts", "network")
	}
}

// checkPersistentWithCPU: CPU pods have no host storage.
func checkPersistentWithCPU(body map[string]any, report reporter) {
	if has(body, "cpu") && has(object(body, "mounts"), "persistent") {
		report("is not available to CPU pods", "mounts", "persistent")
	}
}

// checkNetworkingWithCPU: private network addresses need a GPU.
func checkNetworkingWithCPU(body map[string]any, report reporter) {
	if has(body, "cpu") && body["globalNetworking"] == true {
		report("is not available to CPU pods", "globalNetworking")
	}
}

// Bounds of the texts of a secret in bytes of UTF-8; the schema counts characters (reference platform-v2-growth, section 2.2 and
// D10: the stricter of two readings).
const (
	maxSecretValue       = 1<<24 - 1
	maxSecretDescription = 1<<16 - 1
)

// checkSecretSize: the platform stores a limited number of bytes.
func checkSecretSize(body map[string]any, report reporter) {
	for name, most := range map[string]int{"value": maxSecretValue, "description": maxSecretDescription} {
		if len(text(body, name)) > most {
			report(fmt.Sprintf("must have at most %d bytes in UTF-8", most), name)
		}
	}
}

// checkSSHKeys: a key stands in the set once, whatever comment follows it.
func checkSSHKeys(body map[string]any, report reporter) {
	seen := make(map[string]bool)
	for i, item := range list(body, "keys") {
		s, _ := item.(string)
		fields := strings.Fields(s)
		if len(fields) < 2 {
			continue
		}
		key := fields[0] + " " + fields[1]
		if seen[key] {
			report("is a key that the list already has", "keys", i)
		}
		seen[key] = true
	}
}
