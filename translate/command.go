package translate

import (
	"bytes"
	"encoding/json"
	"strings"

	shellquote "github.com/kballard/go-shellquote"
)

// Command is a container command in the split form. nil and empty mean "not
// set" alike.
type Command struct {
	Entrypoint []string
	Cmd        []string
}

// Empty reports whether the command says nothing.
func (c Command) Empty() bool { return len(c.Entrypoint) == 0 && len(c.Cmd) == 0 }

// Args is the command as v2's args text: a compact JSON object with the
// non-empty ones of entrypoint and cmd, in that order, and "" for an empty
// command.
func (c Command) Args() string {
	if c.Empty() {
		return ""
	}
	var form struct {
		Entrypoint []string `json:"entrypoint,omitempty"`
		Cmd        []string `json:"cmd,omitempty"`
	}
	form.Entrypoint, form.Cmd = c.Entrypoint, c.Cmd
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(form); err != nil {
		return "" // cannot happen: two string slices
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Shell is the command as one line for a shell: the quoted words when there is
// no entrypoint, else the JSON object form.
func (c Command) Shell() string {
	if len(c.Entrypoint) > 0 {
		return c.Args()
	}
	return shellquote.Join(c.Cmd...)
}

// ParseArgs reads v2's args text: a JSON object with entrypoint and cmd, or a
// bare line, which is split as a shell would. A line with unbalanced quotes is
// one word, because guessing would change the command.
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

// parseArgsObject reads the JSON form. The members are looked up by their exact
// names: the text comes from a platform record, and a struct decode would also
// take "CMD".
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
