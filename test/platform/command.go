package platform

import (
	"reflect"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
)

// command is how a container is started. Args is kept exactly as it was sent;
// Entrypoint and Cmd are what it stands for.
type command struct {
	Args       string
	Entrypoint []string
	Cmd        []string
}

// sleeps reports whether the container does nothing but wait.
func (c command) sleeps() bool {
	return len(c.Entrypoint) == 0 && len(c.Cmd) > 0 && c.Cmd[0] == "sleep"
}

// parseArgs decomposes args, which is either a shell string, taken as the CMD,
// or the text of a JSON object with entrypoint and cmd, each a list of strings.
func parseArgs(args string) (command, error) {
	c := command{Args: args}
	trimmed := strings.TrimSpace(args)
	if strings.HasPrefix(trimmed, "{") {
		if v, err := decode([]byte(trimmed)); err == nil {
			return c.fromObject(v)
		}
	}
	words, err := shellquote.Split(args)
	if err != nil {
		return c, badRequest("args is not a shell string that can be split into words", "$.args: a quote is not closed")
	}
	c.Cmd = words
	return c, nil
}

func (c command) fromObject(v any) (command, error) {
	var check checker
	var words struct {
		Entrypoint []string `body:"entrypoint"`
		Cmd        []string `body:"cmd"`
	}
	value{c: &check, at: "$.args", v: v}.read(reflect.ValueOf(&words).Elem())
	c.Entrypoint, c.Cmd = words.Entrypoint, words.Cmd
	if len(check.errs) > 0 {
		return c, badRequest("args is a JSON object but not one of entrypoint and cmd", check.errs...)
	}
	return c, nil
}

// command applies what a body says about the command to an earlier command. What
// it leaves out stays; args with entrypoint or cmd must mean the same.
func (p containerSettings) command(base command) (command, error) {
	if p.Args != nil {
		c, err := parseArgs(*p.Args)
		if err != nil {
			return c, err
		}
		if p.Cmd != nil && !slices.Equal(*p.Cmd, c.Cmd) || p.Entrypoint != nil && !slices.Equal(*p.Entrypoint, c.Entrypoint) {
			return c, badRequest("args and cmd or entrypoint describe different commands")
		}
		return c, nil
	}
	if p.Cmd == nil && p.Entrypoint == nil {
		return base, nil
	}
	set(&base.Cmd, p.Cmd)
	set(&base.Entrypoint, p.Entrypoint)
	base.Args = base.text()
	return base, nil
}

// text is the JSON form of args, which can say everything; empty when there is
// nothing to say.
func (c command) text() string {
	if len(c.Cmd) == 0 && len(c.Entrypoint) == 0 {
		return ""
	}
	var o object
	if len(c.Entrypoint) > 0 {
		o = append(o, "entrypoint", c.Entrypoint)
	}
	if len(c.Cmd) > 0 {
		o = append(o, "cmd", c.Cmd)
	}
	return string(o.append(nil))
}
