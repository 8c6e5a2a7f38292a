package filter

import (
	"maps"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
)

// splitCommand reports whether a body has a half of a command although only pods
// have those at the platform.
func splitCommand(kind operation.Kind, body map[string]any) bool {
	_, cmd := body["cmd"]
	_, entrypoint := body["entrypoint"]
	return kind != operation.KindPod && (cmd || entrypoint)
}

// joinCommand writes the halves of a command as args, the only form that the
// published description has for anything but a pod: a string that holds JSON. A half that
// an update leaves out stays as it is in the current object. A create without a
// command says nothing of it.
func joinCommand(body, current map[string]any, verb operation.Verb) map[string]any {
	out := maps.Clone(body)
	delete(out, "cmd")
	delete(out, "entrypoint")
	if _, given := body["args"]; given {
		return out // the rules have it that they agree
	}
	command := commandOf(current)
	if _, given := body["cmd"]; given {
		command.Cmd = translate.Texts(body, "cmd")
	}
	if _, given := body["entrypoint"]; given {
		command.Entrypoint = translate.Texts(body, "entrypoint")
	}
	if !command.Empty() || verb == operation.VerbUpdate {
		out["args"] = command.Args()
	}
	return out
}

// commandOf is the command of a record, which may have it in either form.
func commandOf(record map[string]any) translate.Command {
	c := translate.Command{Entrypoint: translate.Texts(record, "entrypoint"), Cmd: translate.Texts(record, "cmd")}
	if c.Empty() {
		return translate.ParseArgs(translate.Text(record, "args"))
	}
	return c
}
