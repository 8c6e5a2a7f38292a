package filter

import (
	"fmt"
	"maps"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// whole makes a change of what an endpoint costs say all of it. An endpoint
// costs its workers times their GPUs, and the platform merges each change into
// what it finds: two changes that arrive together, one of the workers and one
// of the GPUs, would both be judged on the state before either, and add up to
// one that nobody judged. When each carries both factors as they were judged,
// the one that comes last leaves a state that was judged as a whole.
func whole(ex *Exchange) error {
	body, isObject := ex.Doc.(map[string]any)
	if ex.Operation.ID != "updateEndpoint" || !isObject {
		return nil
	}
	if body["gpu"] == nil && body["cpu"] == nil && body["workers"] == nil {
		return nil
	}
	after, _ := ex.Input.Resource.After.(map[string]any)
	out := maps.Clone(body)
	complete(out, after, "workers", "min", "max")
	complete(out, after, "gpu", "count", "pools", "excludedTypes")
	if flavours, ok := after["cpu"].([]any); ok && body["cpu"] == nil {
		out["cpu"] = requestable(flavours)
	}
	if faults := ex.Operation.ValidateBody(out); len(faults) > 0 {
		return noVerdict(fmt.Errorf("%s as a whole: %s", operation.KindEndpoint, faults[0]))
	}
	ex.Doc = out
	return nil
}

// complete gives the section of a body the members it lacks, as they stand in
// the state after.
func complete(body, after map[string]any, section string, names ...string) {
	judged, ok := after[section].(map[string]any)
	if !ok {
		return
	}
	given, _ := body[section].(map[string]any)
	all := make(map[string]any, len(given)+len(names))
	for _, name := range names {
		if v := judged[name]; v != nil {
			all[name] = v
		}
	}
	maps.Copy(all, given)
	body[section] = all
}

// requestable writes the CPU flavours of an endpoint as a request names them.
func requestable(flavours []any) []any {
	out := make([]any, len(flavours))
	for i, v := range flavours {
		f, ok := v.(map[string]any)
		if !ok {
			return flavours // the schema will say so
		}
		out[i] = map[string]any{"id": f["id"], "vcpuCount": f["vcpuCount"]}
	}
	return out
}
