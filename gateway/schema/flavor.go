package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sizedFlavor matches a CPU flavor with its size, the vCPUs and the GB of memory, as in cpu5c-4-8.
var sizedFlavor = regexp.MustCompile(`^([A-Za-z0-9]+)-([0-9]+)-[0-9]+$`)

// checkFlavorSize checks that the size in the name of a CPU flavor equals vcpuCount. Otherwise policies could evaluate a
// smaller flavor than the one that is rented. It ignores the memory in the name, which CanonicalBody removes.
func checkFlavorSize(body map[string]any, report reporter) {
	one := func(shape map[string]any, tokens ...any) {
		id := text(shape, "id")
		if !strings.Contains(id, "-") {
			return
		}
		m := sizedFlavor.FindStringSubmatch(id)
		if m == nil {
			report("must be a flavor, or a flavor with its size, <flavor>-<vCPUs>-<GB>", append(tokens, "id")...)
			return
		}
		count, ok := integer(shape, "vcpuCount")
		if size, err := strconv.ParseInt(m[2], 10, 64); ok && (err != nil || size != count) {
			report(fmt.Sprintf("must have the same size as 'vcpuCount', which is %d", count), append(tokens, "id")...)
		}
	}
	one(object(body, "cpu"), "cpu")
	for i, item := range list(body, "cpu") {
		shape, _ := item.(map[string]any)
		one(shape, "cpu", i)
	}
}

// CanonicalBody returns a body with a single spelling for each value: the names of CPU flavors contain no size, because
// vcpuCount holds the size. It does not modify doc, and returns doc if no change is needed. The body must have passed
// CheckRules.
func CanonicalBody(doc any) any {
	body, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	bare := func(shape any) (any, bool) {
		m, _ := shape.(map[string]any)
		parts := sizedFlavor.FindStringSubmatch(text(m, "id"))
		if parts == nil {
			return shape, false
		}
		m = maps.Clone(m)
		m["id"] = parts[1]
		return m, true
	}
	cpu, changed := bare(body["cpu"])
	if shapes, ok := cpu.([]any); ok {
		shapes = slices.Clone(shapes)
		for i, shape := range shapes {
			var sized bool
			shapes[i], sized = bare(shape)
			changed = changed || sized
		}
		cpu = shapes
	}
	if !changed {
		return doc
	}
	body = maps.Clone(body)
	body["cpu"] = cpu
	return body
}
