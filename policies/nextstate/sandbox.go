package nextstate

import "maps"

// createSandbox takes the image and the environment from a template. It returns a fault for a template with a command or
// a registry credential: the request of a sandbox has no members for these, so what was judged could not be sent.
func createSandbox(id string, body, template object) (object, error) {
	if commandOf(template).args != "" || template["registry"] != nil {
		return nil, fault(400, "/templateId", "the template has a command or a registry credential, which a sandbox made through the gateway cannot have")
	}
	out := maps.Clone(body)
	if image, has := template["image"]; has {
		out["imageName"] = image
	}
	env, err := mergedEnv(body, template)
	if err != nil {
		return nil, err
	}
	if env != nil {
		out["env"] = env
	}
	return Defaults(id, out), nil
}
