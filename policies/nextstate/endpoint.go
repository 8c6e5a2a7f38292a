package nextstate

import "encoding/json"

// Platform defaults of an endpoint.
const (
	defaultMinWorkers  json.Number = "0"
	defaultMaxWorkers  json.Number = "3"
	defaultIdleSeconds json.Number = "10"
	defaultTimeoutMS   json.Number = "300000"
)

func endpointDefaults(body object) object {
	out := overlay(object{"type": "QUEUE", "timeout": defaultTimeoutMS, "flashboot": "OFF"}, body)
	workers := object{"min": defaultMinWorkers, "max": defaultMaxWorkers}
	if !countsRequests(out) {
		workers["idleTimeout"] = defaultIdleSeconds
	}
	given, isObject := out["workers"].(object)
	if isObject || out["workers"] == nil {
		out["workers"] = overlay(workers, given)
	}
	countDefault(out)
	return out
}

// countsRequests reports whether the queue is scaled by request count; such an endpoint has no idle timeout.
func countsRequests(body object) bool {
	scaling, _ := body["scaling"].(object)
	return body["type"] == "QUEUE" && scaling["type"] == "REQUEST_COUNT"
}

// createEndpoint copies the template's container settings. For GPU endpoints without a CUDA constraint of their own, it also copies
// the CUDA versions.
func createEndpoint(body, template object) (object, error) {
	if template["serverless"] == false {
		return nil, fault(422, "/templateId", "a pod template cannot be used to create an endpoint")
	}
	out, err := copyTemplate(body, template)
	if err != nil {
		return nil, err
	}
	if err := settleCommand(out, template, body); err != nil {
		return nil, err
	}
	out = endpointDefaults(out)
	gpu, err := section(out, "gpu")
	if err != nil {
		return nil, err
	}
	if gpu != nil {
		templateCUDA(out, gpu, template)
	}
	return out, nil
}

// updateEndpoint changes only the members in the body. workers and gpu are merged by member; all others are replaced as a whole.
func updateEndpoint(current, body, template object) (object, error) {
	if template["serverless"] == false {
		return nil, fault(422, "/templateId", "a pod template cannot be applied to an endpoint")
	}
	change, source, err := withTemplate(current, body, template)
	if err != nil {
		return nil, err
	}
	if err := sameFamily(current, body); err != nil {
		return nil, err
	}
	out := overlay(current, change)
	if err := settleCommand(out, source, body); err != nil {
		return nil, err
	}
	if err := mergeSection(out, current, body, "workers"); err != nil {
		return nil, err
	}
	gpu, err := mergedGPU(current, body)
	if err != nil {
		return nil, err
	}
	if gpu != nil {
		out["gpu"] = gpu
	}
	return out, nil
}

// sameFamily returns a fault if the update would move the endpoint between GPUs and CPUs.
func sameFamily(current, body object) error {
	gpu, cpu := body["gpu"] != nil, body["cpu"] != nil
	switch {
	case gpu && cpu:
		return fault(400, "/cpu", "an endpoint cannot have both gpu and cpu")
	case gpu && current["gpu"] == nil:
		return fault(400, "/gpu", "the endpoint runs on CPUs")
	case cpu && current["gpu"] != nil:
		return fault(400, "/cpu", "the endpoint runs on GPUs")
	}
	return nil
}

// mergeSection sets a member of out to the merged members of base and over, if either has the member.
func mergeSection(out, base, over object, name string) error {
	merged, err := mergedSection(base, over, name)
	if merged != nil {
		out[name] = merged
	}
	return err
}

func mergedSection(current, body object, name string) (object, error) {
	have, err := section(current, name)
	if err != nil {
		return nil, err
	}
	ask, err := section(body, name)
	if err != nil || (ask == nil && have == nil) {
		return nil, err
	}
	return overlay(have, ask), nil
}

// mergedGPU merges gpu. Pools without exclusions clear the exclusions; omitted pools leave both unchanged. An empty minimum clears
// the CUDA minimum.
func mergedGPU(current, body object) (object, error) {
	out, err := mergedSection(current, body, "gpu")
	if err != nil || out == nil {
		return nil, err
	}
	ask, _ := body["gpu"].(object)
	_, pools := ask["pools"]
	_, excluded := ask["excludedTypes"]
	switch {
	case pools && !excluded:
		delete(out, "excludedTypes")
	case excluded && !pools:
		return nil, fault(422, "/gpu/excludedTypes", "excludedTypes requires pools")
	}
	if ask["minCudaVersion"] == "" {
		out["minCudaVersion"] = nil
	}
	return out, nil
}
