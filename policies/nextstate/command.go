package nextstate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	shellquote "github.com/kballard/go-shellquote"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// command is the command of a container (reference platform-v2, section 4.3).
type command struct {
	// args is the command as one string, as the platform stores it.
	args string
	// entrypoint and cmd are the two parts of args.
	entrypoint, cmd []string
	// unsplit is set if args is a shell string with an unclosed quote, so that cmd is unknown.
	unsplit bool
}

// commandMembers returns the members that describe the command.
func commandMembers() []string { return []string{"args", "cmd", "entrypoint"} }

// parseCommand parses args in either of its forms: the JSON text of an object with entrypoint, cmd, both or neither, or a shell
// string, which is the cmd. Any other JSON text is a shell string.
func parseCommand(args string) command {
	if entrypoint, cmd, ok := jsonCommand(args); ok {
		return command{args: args, entrypoint: entrypoint, cmd: cmd}
	}
	cmd, err := shellquote.Split(args)
	return command{args: args, cmd: cmd, unsplit: err != nil}
}

// jsonCommand parses the JSON form of args.
func jsonCommand(args string) (entrypoint, cmd []string, ok bool) {
	// Check IsValid first: it rejects duplicate names, which JSON parsers resolve differently.
	if !strings.HasPrefix(strings.TrimSpace(args), "{") || !jsontext.Value(args).IsValid() {
		return nil, nil, false
	}
	var form map[string]any
	if json.Unmarshal([]byte(args), &form) != nil {
		return nil, nil, false
	}
	for name, value := range form {
		half, isList := operation.Strings(value)
		switch {
		case !isList:
			return nil, nil, false
		case name == "entrypoint":
			entrypoint = half
		case name == "cmd":
			cmd = half
		default:
			return nil, nil, false
		}
	}
	return entrypoint, cmd, true
}

// commandOf reads the command in a platform record. The platform may return args alone, or both parts as well.
func commandOf(record object) command {
	entrypoint, _ := operation.Strings(record["entrypoint"])
	cmd, _ := operation.Strings(record["cmd"])
	args, _ := record["args"].(string)
	if len(entrypoint) == 0 && len(cmd) == 0 {
		return parseCommand(args)
	}
	c := command{args: args, entrypoint: entrypoint, cmd: cmd}
	if args == "" {
		c.args = c.text()
	}
	return c
}

// over returns the command after merging a request body into c. If the body omits a part, the part in c is kept; args replaces both parts.
// If the body contains args and a part, they must describe the same command.
func (c command) over(body object) (command, error) {
	entrypoint, hasEntrypoint := operation.Strings(body["entrypoint"])
	cmd, hasCmd := operation.Strings(body["cmd"])
	if args, given := body["args"].(string); given {
		c = parseCommand(args)
		switch {
		case c.unsplit && (hasCmd || hasEntrypoint):
			return c, fault(400, "/args", "cannot be split into words and therefore cannot be compared with 'cmd' and 'entrypoint'")
		case hasCmd && !slices.Equal(cmd, c.cmd):
			return c, fault(400, "/args", "contains a different command than 'cmd'")
		case hasEntrypoint && !slices.Equal(entrypoint, c.entrypoint):
			return c, fault(400, "/args", "contains a different entry point than 'entrypoint'")
		}
		return c, nil
	}
	if !hasCmd && !hasEntrypoint {
		return c, nil
	}
	switch {
	case hasCmd:
		c.cmd, c.unsplit = cmd, false
	case c.unsplit:
		return c, fault(400, "/entrypoint", "cannot be combined with the current args, which cannot be split into words: send 'cmd' as well")
	}
	if hasEntrypoint {
		c.entrypoint = entrypoint
	}
	c.args = c.text()
	return c, nil
}

// text encodes both parts as args: compact JSON without empty parts, or "" for no command.
func (c command) text() string {
	if len(c.entrypoint) == 0 && len(c.cmd) == 0 {
		return ""
	}
	form := struct {
		Entrypoint []string `json:"entrypoint,omitempty"`
		Cmd        []string `json:"cmd,omitempty"`
	}{c.entrypoint, c.cmd}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(form) // strings always encode
	return strings.TrimSuffix(out.String(), "\n")
}

// settleCommand merges body into base and writes the resulting command into out in all three members, as in platform records. A nil
// base has no command. If neither has a command member, out is unchanged.
func settleCommand(out, base, body object) error {
	if !hasAny(base, commandMembers()) && !hasAny(body, commandMembers()) {
		return nil
	}
	c, err := commandOf(base).over(body)
	if err != nil {
		return err
	}
	out["args"] = c.args
	out["entrypoint"], out["cmd"] = list(c.entrypoint), list(c.cmd)
	if c.unsplit {
		delete(out, "entrypoint")
		delete(out, "cmd")
	}
	return nil
}

// list returns texts as decoded JSON.
func list(texts []string) []any {
	items := make([]any, len(texts))
	for i, text := range texts {
		items[i] = text
	}
	return items
}
