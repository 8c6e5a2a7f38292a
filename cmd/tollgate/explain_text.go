package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// writeExplanation writes an explanation for people.
func writeExplanation(w io.Writer, x *explain.Report) error {
	var b strings.Builder
	if x.Own != nil {
		_, err := fmt.Fprintf(w, "Action of the gateway itself at %s, configuration %s\n\n%s\n", moment(&x.Time), x.Revision, x.Own.Did)
		return err
	}
	fmt.Fprintf(&b, "%s %s\n", x.Method, x.Path)
	fmt.Fprintf(&b, "  by %s, configuration %s\n", callerLine(x.Caller), x.Revision)
	if x.Dry {
		b.WriteString("  dry run: only reads were sent\n")
	}
	if x.DecisionID != "" {
		fmt.Fprintf(&b, "  at %s, decision %s, request %s\n", moment(&x.Time), x.DecisionID, x.RequestID)
	}
	fmt.Fprintf(&b, "\n%s\n\n", verdictLine(x.Dry, x.Verdict, x.Status, x.Stage, x.Detail))
	writeStages(&b, "", x.Stages)
	for _, c := range x.Calls {
		writeCall(&b, x, &c)
	}
	if len(x.ToPass) > 0 {
		b.WriteString("\nTo pass\n")
		for _, line := range x.ToPass {
			fmt.Fprintf(&b, "  - %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func callerLine(c explain.Caller) string {
	parts := []string{c.Org}
	for _, p := range []struct{ what, name string }{{"team ", c.Team}, {"key ", c.Key}, {"", strings.Join(c.Roles, ", ")}} {
		if p.name != "" {
			parts = append(parts, p.what+p.name)
		}
	}
	return strings.Join(parts, ", ")
}

func verdictLine(dry bool, v explain.Verdict, status int, stage, detail string) string {
	would := ""
	if dry {
		would = "would be "
	}
	switch v {
	case explain.Allowed:
		if status != 0 {
			return fmt.Sprintf("ALLOWED, answered %d", status)
		}
		return strings.ToUpper(would + "allowed")
	case explain.Unknown:
		return "UNKNOWN: the outcome depends on data that was not read"
	default:
		text := fmt.Sprintf("%s %d", strings.ToUpper(would+"refused"), status)
		if stage != "" {
			text += " by " + stage
		}
		if detail != "" {
			text += ": " + detail
		}
		return text
	}
}

func writeStages(b *strings.Builder, indent string, stages []explain.Stage) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, s := range stages {
		first := ""
		if len(s.Notes) > 0 {
			first = s.Notes[0]
		}
		_, _ = fmt.Fprintf(t, "%s  %s\t%s\t%s\n", indent, s.Name, s.Result, first)
		for _, n := range s.Notes[min(1, len(s.Notes)):] {
			_, _ = fmt.Fprintf(t, "%s  \t\t%s\n", indent, n)
		}
	}
	_ = t.Flush() // writing to a strings.Builder cannot fail
}

func writeCall(b *strings.Builder, x *explain.Report, c *explain.Call) {
	what := "v2 call"
	if x.IsRun() {
		what = "call"
	}
	fmt.Fprintf(b, "\n%s %s: %s %s\n", what, c.Operation, c.Method, c.Path)
	if c.Body != nil {
		if text, err := json.MarshalIndent(c.Body, "    ", "  "); err == nil {
			fmt.Fprintf(b, "    %s\n", text)
		}
	}
	fmt.Fprintf(b, "  %s\n", verdictLine(x.Dry, c.Verdict, c.Status, "", c.Detail))
	if c.Basis != "" {
		price := c.USDPerHour
		if price != "" {
			price = "at most " + price + " USD per hour: "
		}
		fmt.Fprintf(b, "  price: %s%s\n", price, c.Basis)
	}
	writeStages(b, "  ", c.Stages)
	if len(c.Policies) == 0 {
		return
	}
	fmt.Fprintf(b, "    policies, revision %s\n", c.PolicyRevision)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, p := range c.Policies {
		text := p.Message
		if p.Field != "" {
			text += " (at " + p.Field + ")"
		}
		if p.Doc != "" {
			text += ", see " + p.Doc
		}
		_, _ = fmt.Fprintf(t, "      %s\t%s\t%s\n", p.Policy, p.Verdict, text)
	}
	_ = t.Flush() // as above
}
