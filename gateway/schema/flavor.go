package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sizedFlavor is the spelling of a CPU flavor that carries its size: vCPUs and
// GB of memory, as in cpu5c-4-8.
var sizedFlavor = regexp.MustCompile(`^([A-Za-z0-9]+)-([0-9]+)-[0-9]+$`)

// checkFlavorSize: the size in the name of a CPU flavor and vcpuCount are one size.
// Otherwise the judged flavor could be the smaller and the rented one the larger. The
// memory in the name is not looked at: CanonicalBody takes it away.
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
			report(fmt.Sprintf("names another size than 'vcpuCount', which is %d", count), append(tokens, "id")...)
		}
	}
	one(object(body, "cpu"), "cpu")
	for i, item := range list(body, "cpu") {
		shape, _ := item.(map[string]any)
		one(shape, "cpu", i)
	}
}

// CanonicalBody returns a body with each thing named in one way: a CPU flavor
// without its size, which vcpuCount says. The argument is not changed, and is
// the answer when there is nothing to do. Call it with a body that CheckRules
// passed.
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
