package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/replay"
)

// writeMarkdown writes a report as a comment for a pull request: the differences first, and examples collapsed.
func writeMarkdown(w io.Writer, r *replay.Report) error {
	var b strings.Builder
	b.WriteString("## Replay of policies\n\n")
	fmt.Fprintf(&b, "%s read", counted(r.Read, "event"))
	if r.Skipped+r.Other+r.Unreadable > 0 {
		fmt.Fprintf(&b, ", %d of them not evaluated (%d of other organisations, %d not decisions, %d damaged)",
			r.Skipped+r.Other+r.Unreadable, r.Skipped, r.Other, r.Unreadable)
	}
	for _, org := range slices.Sorted(maps.Keys(r.Revisions)) {
		fmt.Fprintf(&b, "; revision %s of %s", r.Revisions[org], org)
	}
	b.WriteString(".\n\n| calls | result |\n| ---: | --- |\n")
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "| %d | %s |\n", g.Calls, strings.ReplaceAll(string(g.Kind), "_", " "))
	}
	for _, g := range r.Groups {
		if g.Calls == 0 || g.Kind == replay.Same {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| calls | |\n| ---: | --- |\n", strings.ReplaceAll(string(g.Kind), "_", " "))
		for _, name := range byCount(g.Policies) {
			fmt.Fprintf(&b, "| %d | policy %s |\n", g.Policies[name], markdown(name))
		}
		for _, what := range byCount(g.Missing) {
			fmt.Fprintf(&b, "| %d | not in the log: %s |\n", g.Missing[what], markdown(what))
		}
		for _, c := range g.Callers {
			fmt.Fprintf(&b, "| %d | caller %s |\n", c.Calls, markdown(callerName(c.Org, c.Team, c.Key)))
		}
		if len(g.Examples) == 0 {
			continue
		}
		b.WriteString("\n<details><summary>examples</summary>\n\n")
		for _, x := range g.Examples {
			fmt.Fprintf(&b, "- %s\n", markdown(strings.Join([]string{x.DecisionID, x.Time, x.Operation, callerName(x.Org, x.Team, x.Key)}, ", ")))
			for _, part := range []struct {
				when    string
				reasons []replay.Reason
			}{{"was", x.Was}, {"now", x.Now}} {
				for _, reason := range part.reasons {
					fmt.Fprintf(&b, "  - %s: %s\n", part.when, markdown(strings.TrimPrefix(reason.Policy+": "+reason.Message, ": ")))
				}
			}
		}
		b.WriteString("\n</details>\n")
	}
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// markdown formats text of callers as a code span on one line, so that it cannot contain markup, mentions or links.
func markdown(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "`", "'")
	return "`" + strings.ReplaceAll(text, "|", "\\|") + "`"
}
