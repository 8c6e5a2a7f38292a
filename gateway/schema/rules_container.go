package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Numbers above highestPort are not valid ports. Numbers of at least symmetricPort request an arbitrary port that has the same number
// inside and outside of the container.
const (
	highestPort   = 65535
	symmetricPort = 70001
	lastPort      = 99999
)

// checkPorts checks that ports have the form number/protocol.
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
			report("must use tcp to request equal ports inside and outside", "ports", i)
		}
	}
}

// checkEnvironment checks that names of variables are not empty and contain no equals sign, which could set another variable.
func checkEnvironment(body map[string]any, report reporter) {
	for name := range object(body, "env") {
		if name == "" || strings.ContainsRune(name, '=') {
			report("the name of an environment variable must not be empty or contain '='", "env", name)
		}
	}
}

// badIdentifier is the message for an identifier that is empty or contains control characters.
const badIdentifier = "must not be empty or contain control characters"

// checkTemplate checks the ID of a template. The schemas of updates permit an empty ID.
func checkTemplate(body map[string]any, report reporter) {
	if unnamed(body["templateId"]) {
		report(badIdentifier, "templateId")
	}
}

// checkIdentifiers checks that references to resources other than templates are not empty and contain no control characters.
func checkIdentifiers(body map[string]any, report reporter) {
	one := func(value any, tokens ...any) {
		if unnamed(value) {
			report(badIdentifier, slices.Clone(tokens)...)
		}
	}
	many := func(items []any, tokens ...any) {
		for i, item := range items {
			if unnamed(item) {
				report(badIdentifier, append(slices.Clone(tokens), i)...)
			}
		}
	}
	for _, name := range []string{"dataCenter", "image", "imageName", "dataCenterId", "cpuFlavorId"} {
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

// unnamed reports whether a value is a string that is empty or contains control characters.
func unnamed(value any) bool {
	s, ok := value.(string)
	return ok && (s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }))
}

// checkOneMount checks that a persistent volume and a network volume are not combined.
func checkOneMount(body map[string]any, report reporter) {
	mounts := object(body, "mounts")
	if has(mounts, "persistent") && len(list(mounts, "network")) > 0 {
		report("must use one kind of mount, 'persistent' or 'network'", "mounts")
	}
}

// checkMountRemoval checks that an update does not remove a mount.
func checkMountRemoval(body map[string]any, report reporter) {
	if mounts := object(body, "mounts"); has(mounts, "network") && len(list(mounts, "network")) == 0 {
		report("must not be empty because a mount cannot be removed", "mounts", "network")
	}
}

// checkPersistentWithCPU checks that a CPU pod has no persistent volume.
func checkPersistentWithCPU(body map[string]any, report reporter) {
	if has(body, "cpu") && has(object(body, "mounts"), "persistent") {
		report("is not available for CPU pods", "mounts", "persistent")
	}
}

// checkNetworkingWithCPU checks that a CPU pod does not use global networking.
func checkNetworkingWithCPU(body map[string]any, report reporter) {
	if has(body, "cpu") && body["globalNetworking"] == true {
		report("is not available for CPU pods", "globalNetworking")
	}
}

// Maximum sizes of a secret in bytes of UTF-8. The schema counts characters (reference platform-v2-growth, section 2.2
// and D10: the stricter of two interpretations).
const (
	maxSecretValue       = 1<<24 - 1
	maxSecretDescription = 1<<16 - 1
)

// checkSecretSize checks the sizes of a secret in bytes.
func checkSecretSize(body map[string]any, report reporter) {
	for name, most := range map[string]int{"value": maxSecretValue, "description": maxSecretDescription} {
		if len(text(body, name)) > most {
			report(fmt.Sprintf("must have at most %d bytes in UTF-8", most), name)
		}
	}
}

// checkSSHKeys checks that no key occurs twice. It ignores the comments of keys.
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
			report("is a duplicate key", "keys", i)
		}
		seen[key] = true
	}
}
