package filter

import (
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// refuseAbbreviations refuses a body with abbreviated IDs of GPU types or pools. It accepts unknown names that are not an abbreviation,
// because they may be new; policies and the platform decide about them.
func refuseAbbreviations(body any, list *catalog.Snapshot) error {
	object, _ := body.(map[string]any)
	var faults []string
	check := func(kind, noun, place string, value any) {
		name, isText := value.(string)
		if !isText {
			return
		}
		if meant, _ := list.Unlisted(kind, name); len(meant) > 0 {
			faults = append(faults, fmt.Sprintf("%s: %s %s is not in the catalog; did you mean %s?", place, noun, name, strings.Join(meant, " or ")))
		}
	}
	gpu, _ := object["gpu"].(map[string]any)
	compute, _ := object["compute"].(map[string]any)
	check("gpu", "GPU type", "$.gpu.id", gpu["id"])
	check("gpu", "GPU type", "$.compute.gpuTypeId", compute["gpuTypeId"])
	for _, list := range []struct{ member, kind, noun string }{{"pools", "pool", "pool"}, {"excludedTypes", "gpu", "GPU type"}} {
		names, _ := gpu[list.member].([]any)
		for i, name := range names {
			check(list.kind, list.noun, fmt.Sprintf("$.gpu.%s[%d]", list.member, i), name)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	_, detail, _ := strings.Cut(faults[0], ": ")
	p := problem.Invalid.New(detail)
	p.Errors = faults
	return p
}
