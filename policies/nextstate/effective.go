package nextstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// object is a decoded JSON object.
type object = map[string]any

// Needs lists the resources that must be read before the state after a call can be computed.
type Needs struct {
	// Current is set if the resource named by the path is needed.
	Current bool
	// Template is the ID of the template named by the body, or "".
	Template string
}

// NeedsOf returns which resources the caller must read to compute the state after the operation id with the given body. body may be nil.
func NeedsOf(id string, body map[string]any) Needs {
	row, _ := operation.Lookup(id)
	n := Needs{Current: row.MergesState()}
	if row.TakesTemplate {
		n.Template, _ = body["templateId"].(string)
	}
	return n
}

// defaults returns body with the platform's defaults for absent members. If the body names a template, members that the template
// supplies are left out. Operations without defaults return body itself.
func defaults(id string, body map[string]any) map[string]any {
	row, _ := operation.Lookup(id)
	if row.Verb != operation.VerbCreate {
		return body
	}
	switch row.Kind {
	case operation.KindPod:
		return podDefaults(body)
	case operation.KindCluster:
		return injectionDefaults(body)
	case operation.KindEndpoint:
		return endpointDefaults(body)
	case operation.KindSandbox:
		return overlay(object{"idleTimeoutSeconds": json.Number("600"), "maxLifetimeSeconds": json.Number("3600")}, body)
	case operation.KindTemplate:
		return overlay(object{
			"serverless": false, "public": false, "category": "NVIDIA", "startSsh": true, "startJupyter": true,
		}, body)
	default:
		return body
	}
}

// Create returns the state of the resource that a call creates: the body merged with its template and the defaults. template is the record
// of the template named by the body, or nil.
func Create(id string, body, template map[string]any) (map[string]any, error) {
	if err := wantsTemplate(body, template); err != nil {
		return nil, err
	}
	row, _ := operation.Lookup(id)
	switch {
	case row.Kind == operation.KindSecret:
		return WithoutValue(id, body), nil
	case template == nil:
		return createPlain(id, body)
	case row.Kind == operation.KindPod:
		return createPod(body, template)
	case row.Kind == operation.KindCluster:
		return createCluster(body, template)
	case row.Kind == operation.KindEndpoint:
		return createEndpoint(body, template)
	case row.Kind == operation.KindSandbox:
		return createSandbox(id, body, template)
	default:
		return nil, fmt.Errorf("%s does not accept a template", id)
	}
}

// createPlain is Create for a body without a template.
func createPlain(id string, body object) (object, error) {
	out := defaults(id, body)
	if !hasAny(body, commandMembers()) {
		return out, nil
	}
	out = maps.Clone(out)
	return out, settleCommand(out, nil, body)
}

// Update applies an update operation to the current state of a resource, and returns the resulting state. id is the ID of the operation,
// and body is the body of the update. template is the record of the template that the body names, or nil.
func Update(id string, current, body, template map[string]any) (map[string]any, error) {
	if templateID, present := body["templateId"]; present && templateID == "" {
		return nil, fault(400, "/templateId", "template id is empty")
	}
	if err := wantsTemplate(body, template); err != nil {
		return nil, err
	}
	row, _ := operation.Lookup(id)
	switch {
	case row.Verb != operation.VerbUpdate:
		return nil, fmt.Errorf("update %s is not supported", id)
	case row.ReadOperation == "": // replaces the resource regardless of its current state
		return body, nil
	case current == nil:
		return nil, fmt.Errorf("update %s: the current resource is missing", id)
	}
	switch row.Kind {
	case operation.KindPod:
		return updatePod(current, body, template)
	case operation.KindEndpoint:
		return updateEndpoint(current, body, template)
	case operation.KindTemplate:
		return updateTemplate(current, body)
	case operation.KindVolume:
		return updateVolume(current, body)
	case operation.KindCluster:
		return overlay(current, body), nil
	case operation.KindSecret:
		return WithoutValue(id, overlay(current, body)), nil
	default:
		return nil, fmt.Errorf("update %s is not supported", id)
	}
}

// Action returns the state of a pod after an action. It does not check whether the platform accepts the action in the pod's current
// status.
func Action(current map[string]any, action string) (map[string]any, error) {
	if current == nil {
		return nil, fmt.Errorf("action %s: the current pod is missing", action)
	}
	var status string
	switch action {
	case "start", "restart":
		status = "RUNNING"
	case "stop":
		status = "EXITED"
	case "terminate":
		status = "TERMINATED"
	default:
		return nil, fault(422, "/action", "unknown action %q", action)
	}
	return overlay(requestShape(current), object{"status": status}), nil
}

// wantsTemplate checks that the caller passed the template reported by NeedsOf.
func wantsTemplate(body, template object) error {
	id, _ := body["templateId"].(string)
	switch {
	case id != "" && template == nil:
		return fmt.Errorf("template %q has not been read", id)
	case id == "" && template != nil:
		return errors.New("the body does not name the template that was read")
	}
	return nil
}

// WithoutValue returns o without the value of a secret if o is the body or the state of a secret, and otherwise returns o unchanged.
// Policies, operators and logs see secrets in this form, which matches the platform's records.
func WithoutValue(id string, o map[string]any) map[string]any {
	row, _ := operation.Lookup(id)
	if _, has := o["value"]; !has || row.Kind != operation.KindSecret {
		return o
	}
	o = maps.Clone(o)
	delete(o, "value")
	return o
}

// overlay returns base with the members of over replacing its own.
func overlay(base, over object) object {
	out := make(object, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// section returns a member that must be an object, or nil if it is absent or null.
func section(o object, name string) (object, error) {
	v, present := o[name]
	if !present || v == nil {
		return nil, nil
	}
	m, ok := v.(object)
	if !ok {
		return nil, fault(422, "/"+name, "must be an object")
	}
	return m, nil
}

// updateTemplate changes only the members in the body. env is replaced as a whole; empty mounts change nothing.
func updateTemplate(current, body object) (object, error) {
	out := overlay(current, body)
	if m, isObject := body["mounts"].(object); isObject && len(m) == 0 {
		out["mounts"] = current["mounts"]
	}
	return out, settleCommand(out, current, body)
}

func updateVolume(current, body object) (object, error) {
	size, asked := body["size"]
	if asked {
		now, ok1 := operation.WholeNumber(current["size"])
		then, ok2 := operation.WholeNumber(size)
		if !ok1 || !ok2 {
			return nil, fault(422, "/size", "must be a whole number")
		}
		if then < now {
			return nil, fault(400, "/size", "a volume cannot shrink from %d GB to %d GB", now, then)
		}
	}
	return overlay(current, body), nil
}
