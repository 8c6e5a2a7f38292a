package filter

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// seal makes the body state everything that was judged, so that nothing that changes
// between the verdict and the call has a part in it.
//
// The template's values are written into the body, and the template's id taken
// out of it: a later edit of the template is judged when it is used. The platform
// keeps no link from a resource to the template it was made from (reference
// platform-v2, section 4.2), so nothing is lost but the registry credential of
// a foreign template, which the platform does not show. An image that
// only such a credential can fetch cannot be judged, nor used, through the
// gateway. A cluster by an own template that supplies a registry credential or CUDA
// versions keeps the template's id, because the body of a cluster cannot state these; see settle. By
// a foreign template, which may change at any time, such a cluster is refused.
//
// A change of an endpoint's cost states every factor. An endpoint costs its
// workers times their GPUs, and the platform merges each change into the state it
// finds: two changes that arrive together, one of the workers and one of the
// GPUs, would both be judged on the state before either, and add up to one that
// was never judged. When each carries both factors as they were judged, the one
// that comes last leaves a state that was judged as a whole.
//
// A command that the gateway has merged leaves as args, the only form that the platform's
// published description has: see joinCommand.
func seal(ex *Exchange) error {
	body, isObject := ex.Body.Doc.(map[string]any)
	if !isObject {
		return nil
	}
	after, _ := ex.Evaluation.Input.Resource.After.(map[string]any)
	t := ex.Evaluation.Input.Resource.Template
	if body["templateId"] == nil {
		t = nil // nothing of a template is left to take
	}
	row, _ := operation.Of(ex.Operation.ID)
	sealed := body
	switch {
	case t != nil && row.Kind == operation.KindSandbox:
		sealed = pinnedSandbox(body, after)
	case t != nil:
		record, _ := t.Record.(map[string]any)
		if row.Kind == operation.KindCluster && suppliesUnstated(record) {
			return checkTemplateReference(body, t)
		}
		sealed = pinnedBody(body, record, after, row.Verb)
	}
	splits := row.Kind != operation.KindPod && splitCommand(sealed)
	if splits {
		sealed = joinCommand(sealed, after)
		if sealed["args"] == "" && row.Verb == operation.VerbCreate {
			delete(sealed, "args") // a create without a command omits it
		}
	}
	costs := ex.Operation.ID == "updateEndpoint" && (body["gpu"] != nil || body["cpu"] != nil || body["workers"] != nil)
	if costs {
		sealed = wholeBody(sealed, after)
	}
	if t == nil && !costs && !splits {
		return nil
	}
	invalid, broken := ex.check(sealed)
	switch {
	case len(invalid) > 0 && t == nil:
		return evaluationFailed(fmt.Errorf("%s as a whole: %s", operation.KindEndpoint, invalid[0]))
	case len(invalid) > 0:
		return violations(problem.Invalid.Newf("what the template %s supplies does not fit the operation", t.ID), invalid)
	case len(broken) > 0 && t != nil:
		return violations(problem.RuleBroken.Newf("what the template %s supplies contradicts the body", t.ID), broken)
	}
	if t != nil {
		ex.Body.beforeTemplate = body
	}
	ex.Body.Doc = sealed
	return nil
}

// suppliesUnstated reports whether a template supplies what the body of a cluster cannot state: a registry credential or CUDA versions.
func suppliesUnstated(template map[string]any) bool {
	versions, _ := template["allowedCudaVersions"].([]any)
	return template["registry"] != nil || len(versions) > 0
}

// checkTemplateReference leaves the body of a new cluster as it is, with the id of its template. It returns an error if the template is not the
// organisation's own, or if a policy has set members that the platform does not take beside the id.
func checkTemplateReference(body map[string]any, t *policies.Template) error {
	if !t.Own {
		p := problem.RuleBroken.Newf("a cluster cannot be made by the template %s", t.ID)
		p.Errors = []string{"$.templateId: the template of another account has a registry credential or CUDA versions, which the body of a cluster cannot state"}
		return p
	}
	if members := templateConflicts(body); len(members) > 0 {
		return problem.PolicyUnavailable.Newf("policies set %s, which cannot be sent beside the template %s: it supplies a registry credential or CUDA versions",
			strings.Join(members, ", "), t.ID)
	}
	return nil
}

// pinnedBody is body with the members that only the template gave, as they
// stand in the state after.
func pinnedBody(body, template, after map[string]any, verb operation.Verb) map[string]any {
	out := maps.Clone(body)
	if !dependsOnTemplate(body, verb) {
		delete(out, "templateId")
	}
	take := func(name string) {
		if _, given := body[name]; given {
			return
		}
		v, has := after[name]
		// In an update, null is a value that clears; in a create it means
		// an omitted member.
		if has && (v != nil || verb == operation.VerbUpdate) {
			out[name] = v
		}
	}
	for _, name := range []string{"image", "disk", "ports", "registry"} {
		if _, supplied := template[name]; supplied {
			take(name)
		}
	}
	if _, given := body["args"]; !given && suppliesCommand(template) {
		out = joinCommand(out, after)
	}
	if v, has := after["env"]; has && template["env"] != nil {
		out["env"] = v // merged key by key, whatever the body gave
	}
	if verb != operation.VerbCreate {
		return out // an update takes the container's settings and nothing else
	}
	for _, flag := range []string{"startSsh", "startJupyter"} {
		take(flag)
	}
	if mounts, _ := body["mounts"].(map[string]any); len(mounts) == 0 && after["mounts"] != nil {
		out["mounts"] = after["mounts"]
	}
	pinCUDA(out, after)
	return out
}

// pinnedSandbox is the body of a new sandbox with the template's image and environment in place of its id.
func pinnedSandbox(body, after map[string]any) map[string]any {
	out := maps.Clone(body)
	delete(out, "templateId")
	for _, name := range []string{"imageName", "env"} {
		if v := after[name]; v != nil {
			out[name] = v
		}
	}
	return out
}

// dependsOnTemplate reports whether a body leaves more to its template than the platform
// shows: a new endpoint may leave out its name and type beside one. It keeps the
// template's id then; members sent beside it win.
func dependsOnTemplate(body map[string]any, verb operation.Verb) bool {
	if verb != operation.VerbCreate {
		return false
	}
	_, named := body["name"]
	_, scaled := body["scaling"] // an endpoint's own member
	_, typed := body["type"]
	return !named || scaled && !typed
}

// splitCommand reports whether a body has a half of a command.
func splitCommand(body map[string]any) bool {
	_, cmd := body["cmd"]
	_, entrypoint := body["entrypoint"]
	return cmd || entrypoint
}

// suppliesCommand reports whether a template's record has a command member.
func suppliesCommand(template map[string]any) bool {
	_, args := template["args"]
	return args || splitCommand(template)
}

// joinCommand writes the command of the state after as args, in place of its halves. Args
// is a shell string, or JSON with the halves.
func joinCommand(body, after map[string]any) map[string]any {
	out := maps.Clone(body)
	delete(out, "cmd")
	delete(out, "entrypoint")
	out["args"] = after["args"]
	return out
}

func pinCUDA(out, after map[string]any) {
	mine, ok1 := out["gpu"].(map[string]any)
	theirs, ok2 := after["gpu"].(map[string]any)
	if !ok1 || !ok2 {
		return
	}
	versions, supplied := theirs["allowedCudaVersions"]
	if _, given := mine["allowedCudaVersions"]; given || !supplied {
		return
	}
	gpu := maps.Clone(mine)
	gpu["allowedCudaVersions"] = versions
	out["gpu"] = gpu
}

// wholeBody is the body of a change to an endpoint with every factor of the endpoint's
// cost, as it stands in the state after.
func wholeBody(body, after map[string]any) map[string]any {
	out := maps.Clone(body)
	complete(out, after, "workers", "min", "max")
	complete(out, after, "gpu", "count", "pools", "excludedTypes")
	if flavours, ok := after["cpu"].([]any); ok && body["cpu"] == nil {
		out["cpu"] = requestable(flavours)
	}
	return out
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
