package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/kballard/go-shellquote"
)

// checkCommand: args may be sent beside cmd and entrypoint only when they
// describe the same command.
func checkCommand(body map[string]any, report reporter) {
	args, ok := body["args"].(string)
	if !ok || (!has(body, "cmd") && !has(body, "entrypoint")) {
		return
	}
	entrypoint, cmd, ok := splitArgs(args)
	if !ok {
		report("cannot be split into words, so it cannot agree with 'cmd' or 'entrypoint'", "args")
		return
	}
	if has(body, "cmd") && !slices.Equal(words(list(body, "cmd")), cmd) {
		report("describes another command than 'cmd'", "args")
	}
	if has(body, "entrypoint") && !slices.Equal(words(list(body, "entrypoint")), entrypoint) {
		report("describes another entry point than 'entrypoint'", "args")
	}
}

// splitArgs reads a command in either of its two forms: the JSON text of an
// object with entrypoint and cmd, or a shell string, which is a cmd alone. It
// fails on a shell string with an open quote.
func splitArgs(args string) (entrypoint, cmd []string, ok bool) {
	if entrypoint, cmd, ok = splitJSONArgs(args); ok {
		return entrypoint, cmd, true
	}
	cmd, err := shellquote.Split(args)
	return nil, cmd, err == nil
}

func splitJSONArgs(args string) (entrypoint, cmd []string, ok bool) {
	// The strict check first: a name used twice would mean one command to us
	// and another to the platform.
	if !strings.HasPrefix(strings.TrimSpace(args), "{") || !jsontext.Value(args).IsValid() {
		return nil, nil, false
	}
	var form map[string]any
	if json.Unmarshal([]byte(args), &form) != nil || len(form) == 0 {
		return nil, nil, false
	}
	for name, value := range form {
		items, isList := value.([]any)
		strs := words(items)
		switch {
		case !isList || len(strs) != len(items):
			return nil, nil, false
		case name == "entrypoint":
			entrypoint = strs
		case name == "cmd":
			cmd = strs
		default:
			return nil, nil, false
		}
	}
	return entrypoint, cmd, true
}

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
	for _, name := range []string{"templateId", "dataCenter", "image"} {
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
