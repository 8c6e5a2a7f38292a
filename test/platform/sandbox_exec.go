package platform

import (
	"strings"
)

// sandboxCommand is the body of an exec.
type sandboxCommand struct {
	Command []string `body:"command" need:"yes" least:"1"`
}

// execLocked runs a command in a sandbox, which counts as activity. A command that fails
// is answered with 200.
func (x *exchange) execLocked(b *sandbox, want *sandboxCommand) (reply, error) {
	if err := x.upLocked(b); err != nil {
		return reply{}, err
	}
	b.ActiveAt = x.now
	x.acct.sandboxes.touch(b.ID)
	output, fault := b.exec(want.Command)
	return ok(object{"output", output, "error", optional(fault)}), nil
}

// upLocked refuses a sandbox whose container does not exist yet, or any more.
func (x *exchange) upLocked(b *sandbox) error {
	switch {
	case !b.EndedAt.IsZero():
		return conflict("the sandbox is " + b.stateAt(x.now))
	case x.now.Before(b.UpAt):
		return conflict("the container of the sandbox is still starting")
	default:
		return nil
	}
}

// exec is the result of a command. There is no shell and no program: echo and printenv
// write what they would, false fails, and any other command is its own output.
func (b *sandbox) exec(command []string) (output, fault string) {
	const failed = "command exited with status 1"
	switch args := command[1:]; command[0] {
	case "echo":
		return strings.Join(args, " ") + "\n", ""
	case "printenv":
		for _, name := range args {
			value, has := b.Booted[name]
			if !has {
				return output, failed
			}
			output += value + "\n"
		}
		return output, ""
	case "false":
		return "", failed
	default:
		return strings.Join(command, " ") + "\n", ""
	}
}

func (x *exchange) sandboxLogLocked(b *sandbox) (func() (logBook, bool), error) {
	if err := x.upLocked(b); err != nil {
		return nil, err
	}
	return func() (logBook, bool) {
		life := run{Ordered: b.CreatedAt, Booting: b.RunsAt, Running: b.UpAt, Ended: b.EndedAt}
		return logBook{b.Image, []run{life}}, !b.EndedAt.IsZero() || x.acct.sandboxes.get(b.ID) != b
	}, nil
}
