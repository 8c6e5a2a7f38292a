package translate

import (
	"encoding/json"
	"strings"

	shellquote "github.com/kballard/go-shellquote"
)

// Command is a container command in split form. Nil and empty slices both mean "not set".
type Command struct {
	Entrypoint []string
	Cmd        []string
}

// Empty reports whether both parts are empty.
func (c Command) Empty() bool { return len(c.Entrypoint) == 0 && len(c.Cmd) == 0 }

// Args formats the command as the args text of v2: a compact JSON object with entrypoint and cmd, without empty parts. It returns "" for an
// empty command.
func (c Command) Args() string {
	if c.Empty() {
		return ""
	}
	var form struct {
		Entrypoint []string `json:"entrypoint,omitempty"`
		Cmd        []string `json:"cmd,omitempty"`
	}
	form.Entrypoint, form.Cmd = c.Entrypoint, c.Cmd
	out, _ := appendOther(nil, form) // two string slices always encode
	return string(out)
}

// Shell formats the command as one shell line: the quoted words of Cmd, or the result of Args if there is an entrypoint.
func (c Command) Shell() string {
	if len(c.Entrypoint) > 0 {
		return c.Args()
	}
	return shellquote.Join(c.Cmd...)
}

// ParseArgs parses the args text of v2. The text is a JSON object with entrypoint and cmd, or a line that is split like a shell command. A
// line with unbalanced quotes becomes one word, because any split might change the command.
func ParseArgs(args string) Command {
	if c, ok := parseArgsObject(args); ok {
		return c
	}
	if strings.TrimSpace(args) == "" {
		return Command{}
	}
	words, err := shellquote.Split(args)
	if err != nil {
		words = []string{args}
	}
	return Command{Cmd: words}
}

// parseArgsObject parses the JSON form. It looks members up by exact name, because the text comes from a platform record
// and decoding into a struct would also accept "CMD".
func parseArgsObject(args string) (Command, bool) {
	if !strings.HasPrefix(strings.TrimSpace(args), "{") {
		return Command{}, false
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(args), &object); err != nil {
		return Command{}, false
	}
	c := Command{Entrypoint: Texts(object, "entrypoint"), Cmd: Texts(object, "cmd")}
	return c, !c.Empty() || len(object) == 0
}
