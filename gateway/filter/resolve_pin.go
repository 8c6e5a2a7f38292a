package filter

import (
	"maps"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// pin puts what a template supplied into the body and takes the template's id
// out of it. What was judged is then what is sent: a template that is edited
// between the two changes nothing, and its later edits are judged when somebody
// uses them. The platform keeps no link from what was made to the template it
// was made from (reference platform-v2, section 4.2), so nothing is lost but
// one thing: the registry credential of somebody else's template, which the
// platform shows to nobody. An image that only such a credential can fetch
// cannot be judged, nor used, through the gateway.
func pin(ex *Exchange) error {
	t := ex.Input.Resource.Template
	body, isObject := ex.Doc.(map[string]any)
	if t == nil || body["templateId"] == nil || !isObject {
		return nil // nothing of a template is left to take
	}
	record, _ := t.Record.(map[string]any)
	after, _ := ex.Input.Resource.After.(map[string]any)
	row, _ := operation.Of(ex.Operation.ID)
	pinned := pinnedBody(body, record, after, row.Verb)
	if faults := ex.Operation.ValidateBody(pinned); len(faults) > 0 {
		return violations(problem.Invalid.Newf("what the template %s supplies does not fit the operation", t.ID), faults)
	}
	if faults := ex.Operation.CheckRules(pinned); len(faults) > 0 {
		return violations(problem.RuleBroken.Newf("what the template %s supplies contradicts the body", t.ID), faults)
	}
	ex.named, ex.Doc = ex.Doc, pinned
	return nil
}

// pinnedBody is body with the members that only the template gave, as they
// stand in the state after.
func pinnedBody(body, template, after map[string]any, verb operation.Verb) map[string]any {
	out := maps.Clone(body)
	if !leansOn(body, verb) {
		delete(out, "templateId")
	}
	take := func(name string) {
		if _, given := body[name]; given {
			return
		}
		v, has := after[name]
		// In an update, null is a value that clears; in a create it is what
		// leaving out means.
		if has && (v != nil || verb == operation.VerbUpdate) {
			out[name] = v
		}
	}
	for _, name := range []string{"image", "disk", "ports", "registry"} {
		if _, supplied := template[name]; supplied {
			take(name)
		}
	}
	takeCommand(body, template, take)
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

// leansOn tells whether a body leaves more to its template than the platform
// shows: a new endpoint may leave out its name and type beside one. It keeps the
// template's id then; what is sent beside it wins.
func leansOn(body map[string]any, verb operation.Verb) bool {
	if verb != operation.VerbCreate {
		return false
	}
	_, named := body["name"]
	_, scaled := body["scaling"] // an endpoint's own member
	_, typed := body["type"]
	return !named || scaled && !typed
}

// takeCommand takes the template's command in the one form it is stored in;
// the other is read out of it.
func takeCommand(body, template map[string]any, take func(string)) {
	for name := range body {
		if name == "args" || name == "cmd" || name == "entrypoint" {
			return // the body's own command replaces the template's
		}
	}
	if args, stored := template["args"].(string); stored && strings.TrimSpace(args) != "" {
		take("args")
		return
	}
	for _, name := range []string{"args", "cmd", "entrypoint"} {
		if _, supplied := template[name]; supplied {
			take(name)
		}
	}
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
