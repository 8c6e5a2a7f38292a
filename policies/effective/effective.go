package effective

import (
	"errors"
	"fmt"
	"maps"
)

// object is decoded JSON's object.
type object = map[string]any

// Needs says what must be read before a call can be judged.
type Needs struct {
	// Current: the object the path names, as it is now.
	Current bool
	// Template is the id of the template the body names; "" for none.
	Template string
}

// NeedsOf tells what a call must be merged with. body may be nil.
func NeedsOf(operation string, body map[string]any) Needs {
	var n Needs
	switch operation {
	case "updatePod", "updateCluster", "updateEndpoint", "updateTemplate", "updateNetworkVolume", "podAction":
		n.Current = true
	}
	switch operation {
	case "createPod", "updatePod", "createEndpoint", "updateEndpoint":
		n.Template, _ = body["templateId"].(string)
	}
	return n
}

// Defaults returns body with the platform's defaults for absent members filled
// in. A body that names a template leaves to it what the template supplies.
// Operations without defaults return body itself.
func Defaults(operation string, body map[string]any) map[string]any {
	switch operation {
	case "createPod":
		return podDefaults(body)
	case "createCluster":
		return withDefaults(body, object{"startJupyter": false, "startSsh": false})
	case "createEndpoint":
		return endpointDefaults(body)
	case "createTemplate":
		return withDefaults(body, object{
			"serverless": false, "public": false, "category": "NVIDIA", "startSsh": true, "startJupyter": true,
		})
	default:
		return body
	}
}

// Create is the state after a create: the body, its template merged in, and
// the defaults. template is the record the body names, nil when it names none.
func Create(operation string, body, template map[string]any) (map[string]any, error) {
	if err := wantsTemplate(body, template); err != nil {
		return nil, err
	}
	switch operation {
	case "createPod":
		return createPod(body, template)
	case "createEndpoint":
		return createEndpoint(body, template)
	default:
		if template != nil {
			return nil, fmt.Errorf("%s takes no template", operation)
		}
		return Defaults(operation, body), nil
	}
}

// Update is the state after an update of current. template is the record the
// body names, nil when it names none.
func Update(operation string, current, body, template map[string]any) (map[string]any, error) {
	if id, present := body["templateId"]; present && id == "" {
		return nil, fault(400, "/templateId", "an empty template id")
	}
	if err := wantsTemplate(body, template); err != nil {
		return nil, err
	}
	if operation == "updateSshKeys" { // a replacement, whatever was there
		return body, nil
	}
	if current == nil {
		return nil, fmt.Errorf("%s without the current object", operation)
	}
	switch operation {
	case "updatePod":
		return updatePod(current, body, template)
	case "updateEndpoint":
		return updateEndpoint(current, body, template)
	case "updateTemplate":
		return updateTemplate(current, body), nil
	case "updateNetworkVolume":
		return updateVolume(current, body)
	case "updateCluster":
		return overlay(current, body), nil
	default:
		return nil, fmt.Errorf("no rules for the update %s", operation)
	}
}

// Action is the state of a pod after an action. Whether the platform accepts
// the action in the pod's present status is left to the platform.
func Action(current map[string]any, action string) (map[string]any, error) {
	if current == nil {
		return nil, fmt.Errorf("action %s without the current pod", action)
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

// wantsTemplate checks that the caller of this package read what NeedsOf said.
func wantsTemplate(body, template object) error {
	id, _ := body["templateId"].(string)
	switch {
	case id != "" && template == nil:
		return fmt.Errorf("template %q was not read", id)
	case id == "" && template != nil:
		return errors.New("a template nobody named")
	}
	return nil
}

// withDefaults adds members that are absent.
func withDefaults(body, defaults object) object {
	out := maps.Clone(defaults)
	maps.Copy(out, body)
	return out
}

// overlay is base with the members of over in place of its own.
func overlay(base, over object) object {
	out := make(object, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// section is a member that must be an object if it is there; nil when absent
// or null.
func section(o object, name string) (object, error) {
	v, present := o[name]
	if !present || v == nil {
		return nil, nil
	}
	m, ok := v.(object)
	if !ok {
		return nil, fault(422, "/"+name, "not an object")
	}
	return m, nil
}

// updateTemplate: only present members change, env as a whole; empty mounts
// leave them as they are.
func updateTemplate(current, body object) object {
	out := overlay(current, body)
	if m, isObject := body["mounts"].(object); isObject && len(m) == 0 {
		out["mounts"] = current["mounts"]
	}
	settleCommand(out, current, body)
	return out
}

func updateVolume(current, body object) (object, error) {
	size, asked := body["size"]
	if asked {
		now, ok1 := wholeNumber(current["size"])
		then, ok2 := wholeNumber(size)
		if !ok1 || !ok2 {
			return nil, fault(422, "/size", "not a whole number")
		}
		if then < now {
			return nil, fault(400, "/size", "a volume of %d GB cannot shrink to %d GB", now, then)
		}
	}
	return overlay(current, body), nil
}
