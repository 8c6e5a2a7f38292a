package filter

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// seal makes the body contain everything that was checked, so that changes between the evaluation and the call cannot affect the result.
//
// The template's values are written into the body and the template's ID is removed. A later edit of the template is checked when it is
// used. The platform keeps no reference from a resource to its template (reference platform-v2, section 4.2), so nothing is lost except the
// registry credential of a foreign template, which the platform does not reveal. An image that requires this credential can therefore not
// be used through the gateway. A cluster cannot state a registry credential or CUDA versions in its body; if its own template supplies one
// of these, the template's ID stays in the body (see resolveStates). A foreign template that supplies one of these is refused, because it
// may change at any time.
//
// A change to the cost of an endpoint states all factors of the cost. An endpoint costs its workers times their GPUs, and the platform
// merges each change into the current state. If two concurrent changes set only the workers and only the GPUs, each would be checked
// against the old state, and their combination would not be checked at all. Because each sends both factors as checked, the last change
// always leaves a state that was checked as a whole.
//
// A merged command is sent as args, the only form in the platform's published description; see joinCommand.
func seal(ex *Exchange) error {
	body, isObject := ex.Body.Doc.(map[string]any)
	if !isObject {
		return nil
	}
	after, _ := ex.Evaluation.Input.Resource.After.(map[string]any)
	t := ex.Evaluation.Input.Resource.Template
	if body["templateId"] == nil {
		t = nil // nothing is left to take from the template
	}
	row, _ := operation.Lookup(ex.Operation.ID)
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
			delete(sealed, "args") // a create without a command omits args
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
		return violations(problem.Invalid.Newf("the values from template %s are not valid for this operation", t.ID), invalid)
	case len(broken) > 0 && t != nil:
		return violations(problem.RuleBroken.Newf("the values from template %s contradict the body", t.ID), broken)
	}
	if t != nil {
		ex.Body.beforeTemplate = body
	}
	ex.Body.Doc = sealed
	return nil
}

// suppliesUnstated reports whether a template supplies a registry credential or CUDA versions, which the body of a cluster cannot state.
func suppliesUnstated(template map[string]any) bool {
	versions, _ := template["allowedCudaVersions"].([]any)
	return template["registry"] != nil || len(versions) > 0
}

// checkTemplateReference checks a new cluster whose body keeps the template's ID. It returns a problem if the template belongs to another
// account, or if a policy set members that cannot be combined with the ID.
func checkTemplateReference(body map[string]any, t *policies.Template) error {
	if !t.Own {
		p := problem.RuleBroken.Newf("a cluster cannot be created from template %s", t.ID)
		p.Errors = []string{"$.templateId: a template of another account must not have a registry credential or CUDA versions"}
		return p
	}
	if members := templateConflicts(body); len(members) > 0 {
		return problem.PolicyUnavailable.Newf("policies set %s, which cannot be combined with template %s because it has a registry credential or CUDA versions",
			strings.Join(members, ", "), t.ID)
	}
	return nil
}

// pinnedBody returns body with the values that only the template supplies, taken from the resulting state.
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
		// In an update, null clears a value. In a new resource, it means an omitted member.
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
		out["env"] = v // environments are always merged by key
	}
	if verb != operation.VerbCreate {
		return out // updates take only container settings
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

// pinnedSandbox returns the body of a new sandbox with the template's image and environment instead of its ID.
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

// dependsOnTemplate reports whether the body of a new endpoint leaves its name or type to the template, which the platform does not reveal.
// The template's ID then stays in the body. Members sent with it take precedence.
func dependsOnTemplate(body map[string]any, verb operation.Verb) bool {
	if verb != operation.VerbCreate {
		return false
	}
	_, named := body["name"]
	_, scaled := body["scaling"] // only endpoints have this member
	_, typed := body["type"]
	return !named || scaled && !typed
}

// splitCommand reports whether a body has cmd or entrypoint.
func splitCommand(body map[string]any) bool {
	_, cmd := body["cmd"]
	_, entrypoint := body["entrypoint"]
	return cmd || entrypoint
}

// suppliesCommand reports whether a template has a command.
func suppliesCommand(template map[string]any) bool {
	_, args := template["args"]
	return args || splitCommand(template)
}

// joinCommand replaces cmd and entrypoint with args, which contains the command of the resulting state. args is a shell string, or JSON
// with both parts.
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

// wholeBody returns the body of an endpoint update with all factors of the cost, taken from the resulting state.
func wholeBody(body, after map[string]any) map[string]any {
	out := maps.Clone(body)
	complete(out, after, "workers", "min", "max")
	complete(out, after, "gpu", "count", "pools", "excludedTypes")
	if flavours, ok := after["cpu"].([]any); ok && body["cpu"] == nil {
		out["cpu"] = requestable(flavours)
	}
	return out
}

// complete adds missing members to a section of the body, taken from the resulting state.
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

// requestable converts the CPU flavours of an endpoint to the form used in requests.
func requestable(flavours []any) []any {
	out := make([]any, len(flavours))
	for i, v := range flavours {
		f, ok := v.(map[string]any)
		if !ok {
			return flavours // schema validation reports it
		}
		out[i] = map[string]any{"id": f["id"], "vcpuCount": f["vcpuCount"]}
	}
	return out
}
