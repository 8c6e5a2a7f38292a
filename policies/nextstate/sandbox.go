package nextstate

import "maps"

// createSandbox copies the image and the environment from a template. It returns a fault if the template has a command or a
// registry credential: requests for sandboxes have no such members, so the state that policies evaluated could not be requested.
func createSandbox(id string, body, template object) (object, error) {
	if commandOf(template).args != "" || template["registry"] != nil {
		return nil, fault(400, "/templateId", "the template has a command or a registry credential, which the gateway cannot set for a sandbox")
	}
	out := maps.Clone(body)
	if image, has := template["image"]; has {
		out["imageName"] = image
	}
	if err := mergeSection(out, template, body, "env"); err != nil {
		return nil, err
	}
	return defaults(id, out), nil
}
