package nextstate

import (
	"encoding/json"
	"maps"
)

func podDefaults(body object) object {
	out := overlay(object{"cloud": "SECURE", "globalNetworking": false}, injectionDefaults(body))
	countDefault(out)
	return out
}

// injectionDefaults disables the injections that a body omits, unless the body names a template, which supplies them.
func injectionDefaults(body object) object {
	if _, templated := body["templateId"]; templated {
		return body
	}
	return overlay(object{"startJupyter": false, "startSsh": false}, body)
}

// countDefault sets the GPU count to 1 if gpu does not contain a count.
func countDefault(out object) {
	gpu, ok := out["gpu"].(object)
	if !ok {
		return
	}
	if _, has := gpu["count"]; !has {
		out["gpu"] = overlay(object{"count": json.Number("1")}, gpu)
	}
}

// createPod copies the template's container settings, persistent mount, injections and CUDA constraint, the last three only where
// they apply.
func createPod(body, template object) (object, error) {
	out, err := copyPodTemplate(body, template)
	if err != nil {
		return nil, err
	}
	out = podDefaults(out)
	gpu, err := section(out, "gpu")
	if err != nil {
		return nil, err
	}
	if gpu == nil { // CPU pods have neither mount nor CUDA constraint
		return out, nil
	}
	if err := templateMount(out, body, template); err != nil {
		return nil, err
	}
	templateCUDA(out, gpu, template)
	return out, nil
}

// createCluster copies the template's container settings, persistent mount and injections to every member.
func createCluster(body, template object) (object, error) {
	out, err := copyPodTemplate(body, template)
	if err != nil {
		return nil, err
	}
	return out, templateMount(out, body, template)
}

// copyPodTemplate merges the container settings, the command and the injections of a pod template into a body.
func copyPodTemplate(body, template object) (object, error) {
	if template["serverless"] == true {
		return nil, fault(422, "/templateId", "a serverless template cannot be used for pods or clusters")
	}
	out, err := copyTemplate(body, template)
	if err != nil {
		return nil, err
	}
	for _, flag := range []string{"startSsh", "startJupyter"} {
		if _, given := body[flag]; given {
			continue
		}
		out[flag] = true // the platform's default if the template lacks the flag
		if v, has := template[flag]; has {
			out[flag] = v
		}
	}
	return out, settleCommand(out, template, body)
}

// templateMount adds the template's persistent mount if the body has no mounts. An empty mounts object is treated like a missing one.
func templateMount(out, body, template object) error {
	mine, err := section(body, "mounts")
	if err != nil || len(mine) > 0 {
		return err
	}
	theirs, err := section(template, "mounts")
	if err != nil {
		return err
	}
	if p, has := theirs["persistent"]; has && p != nil {
		out["mounts"] = object{"persistent": p}
	}
	return nil
}

// templateCUDA copies the template's CUDA constraint, unless the body has either of the two CUDA members.
func templateCUDA(out, gpu, template object) {
	if hasAny(gpu, []string{"allowedCudaVersions", "minCudaVersion"}) {
		return
	}
	if v, has := template["allowedCudaVersions"]; has {
		out["gpu"] = overlay(gpu, object{"allowedCudaVersions": v})
	}
}

// requestShape returns a pod record in which members that differ from requests have the form of requests: globalNetworking is a
// boolean. Policies then need to handle only one form.
func requestShape(record object) object {
	out := maps.Clone(record)
	if g, ok := record["globalNetworking"].(object); ok {
		enabled, _ := g["enabled"].(bool)
		out["globalNetworking"] = enabled
	}
	return out
}

// updatePod changes only the members in the body. env is replaced as a whole. A template's container settings apply unless the body
// sets them.
func updatePod(current, body, template object) (object, error) {
	if _, member := current["cluster"].(object); member {
		return nil, fault(409, "", "the pod is a member of a cluster")
	}
	if template["serverless"] == true {
		return nil, fault(422, "/templateId", "a serverless template cannot be applied to a pod")
	}
	change, source, err := withTemplate(current, body, template)
	if err != nil {
		return nil, err
	}
	out := overlay(requestShape(current), change)
	if err := settleCommand(out, source, body); err != nil {
		return nil, err
	}
	mounts, err := patchedMounts(current, body)
	if err != nil {
		return nil, err
	}
	if mounts != nil {
		out["mounts"] = mounts
	}
	return out, nil
}

// patchedMounts applies the platform's rules for mounts in an update: absent or empty mounts change nothing, no kind can be added,
// and the network volume cannot be changed.
func patchedMounts(current, body object) (object, error) {
	have, err := section(current, "mounts")
	if err != nil {
		return nil, err
	}
	ask, err := section(body, "mounts")
	if err != nil {
		return nil, err
	}
	if len(ask) == 0 {
		return have, nil
	}
	out := overlay(have, nil)
	if p, asked := ask["persistent"]; asked {
		if have["persistent"] == nil {
			return nil, fault(400, "/mounts/persistent", "the pod was created without a persistent mount")
		}
		out["persistent"] = p
	}
	if n, asked := ask["network"]; asked {
		if err := sameVolume(have["network"], n); err != nil {
			return nil, err
		}
		out["network"] = n
	}
	return out, nil
}

func sameVolume(have, ask any) error {
	const at = "/mounts/network"
	list, ok := ask.([]any)
	if !ok || len(list) != 1 {
		return fault(400, at, "exactly one network volume is required")
	}
	old, _ := have.([]any)
	if len(old) == 0 {
		return fault(400, at, "the pod was created without a network volume")
	}
	was, _ := old[0].(object)
	is, _ := list[0].(object)
	if is == nil || was == nil || is["volumeId"] != was["volumeId"] {
		return fault(400, at+"/0/volumeId", "the network volume of a pod cannot be changed")
	}
	return nil
}
