package nextstate

import "maps"

// templateMembers returns the members copied from a template if the body omits them. env and the command are merged instead.
func templateMembers() []string { return []string{"image", "disk", "ports", "registry"} }

// copyTemplate merges the container settings of a template into a body: members of the body take precedence, and env is merged by
// key. The command is left to settleCommand.
func copyTemplate(body, template object) (object, error) {
	out := maps.Clone(body)
	for _, name := range templateMembers() {
		if _, given := body[name]; !given {
			if v, has := template[name]; has {
				out[name] = v
			}
		}
	}
	return out, mergeSection(out, template, body, "env")
}

// withTemplate returns the members that an update changes, and the record whose command the update changes: the template if the body names
// one, and otherwise the current resource.
func withTemplate(current, body, template object) (change, source object, err error) {
	if template == nil {
		return body, current, nil
	}
	change, err = copyTemplate(body, template)
	return change, template, err
}

func hasAny(o object, names []string) bool {
	for _, name := range names {
		if _, has := o[name]; has {
			return true
		}
	}
	return false
}
