package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sizedFlavor matches a CPU flavor name that includes the number of vCPUs and the memory in GB, such as cpu5c-4-8.
var sizedFlavor = regexp.MustCompile(`^([A-Za-z0-9]+)-([0-9]+)-[0-9]+$`)

// checkFlavorSize checks that the number of vCPUs in the name of a CPU flavor equals vcpuCount. Otherwise policies could evaluate a smaller
// flavor than the one that is rented. It does not check the memory size in the name, because CanonicalBody removes the size.
func checkFlavorSize(body map[string]any, report reporter) {
	eachCPU(body, func(shape map[string]any, tokens ...any) {
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
	})
}

// CanonicalBody returns a body in which each value has a single spelling: it removes the size from the names of CPU flavors, because
// vcpuCount already contains the size. It does not modify doc, and returns doc itself if no change is needed. [Operation.CheckRules] must
// have accepted doc.
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
