package effective

import (
	"encoding/json"
	"maps"
	"strconv"
)

// command lists the members that together describe one command.
func command() []string { return []string{"args", "cmd", "entrypoint"} }

// templateMembers are copied from a template when the body leaves them out.
// env is merged and the command is one thing; both are handled apart.
func templateMembers() []string { return []string{"image", "disk", "ports", "registry"} }

// copyTemplate puts the container settings of a template under those of the
// body: the body's member wins, env is merged per key.
func copyTemplate(body, template object) (object, error) {
	out := maps.Clone(body)
	for _, name := range templateMembers() {
		if _, given := body[name]; !given {
			if v, has := template[name]; has {
				out[name] = v
			}
		}
	}
	if !hasAny(body, command()) {
		for _, name := range command() {
			if v, has := template[name]; has {
				out[name] = v
			}
		}
	}
	env, err := mergedEnv(body, template)
	if err != nil {
		return nil, err
	}
	if env != nil {
		out["env"] = env
	}
	return out, nil
}

func mergedEnv(body, template object) (object, error) {
	mine, err := section(body, "env")
	if err != nil {
		return nil, err
	}
	theirs, err := section(template, "env")
	if err != nil {
		return nil, err
	}
	if mine == nil && theirs == nil {
		return nil, nil
	}
	return overlay(theirs, mine), nil
}

// settleCommand keeps the command of out consistent: a body that gives the
// command in one encoding makes the other encoding of the old one stale.
func settleCommand(out, current, body object) {
	_, args := body["args"]
	_, cmd := body["cmd"]
	_, entrypoint := body["entrypoint"]
	switch {
	case args && !cmd && !entrypoint:
		delete(out, "cmd")
		delete(out, "entrypoint")
	case !args && (cmd || entrypoint):
		delete(out, "args")
	case !args:
		for _, name := range command() {
			if v, has := current[name]; has {
				out[name] = v
			}
		}
	}
}

func hasAny(o object, names []string) bool {
	for _, name := range names {
		if _, has := o[name]; has {
			return true
		}
	}
	return false
}

// wholeNumber reads a decoded JSON number that is a whole one.
func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case json.Number:
		i, err := strconv.ParseInt(n.String(), 10, 64)
		return i, err == nil
	case float64:
		return int64(n), n == float64(int64(n))
	case int:
		return int64(n), true
	default:
		return 0, false
	}
}
