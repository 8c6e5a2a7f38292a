package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/audit"
)

func newAudit() *cobra.Command {
	return group("audit", "List and verify audited changes", "  tollgate audit verify audit.log", newAuditVerify())
}

func newAuditVerify() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Detect modified, removed and inserted lines in an audit log",
		Long: `Verifies the hash chain in the audit log of one gateway. Pass the oldest file first.
Each line contains the SHA-256 of the previous line. The command prints the digest of
the last line, called the head. Because the chain of a truncated log is still valid,
store the head elsewhere from time to time, and pass the stored head with --head.`,
		Example: "  tollgate audit verify audit.log.2 audit.log.1 audit.log",
		Args:    cobra.MinimumNArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var c audit.Chain
			found := head == ""
			for _, name := range args {
				f, err := os.Open(name)
				if err != nil {
					return err
				}
				err = c.Verify(name, f, func(sum string) { found = found || strings.EqualFold(sum, head) })
				if err := errors.Join(err, f.Close()); err != nil {
					return err
				}
			}
			if !found {
				return fmt.Errorf("line with digest %s not found: the log was truncated or rewritten", head)
			}
			w := cmd.OutOrStdout()
			_, _ = fmt.Fprintf(w, "lines %d to %d: the chain is valid\nhead  %s\n", c.First, c.Last, c.Head)
			if c.Incomplete > 0 {
				_, _ = fmt.Fprintf(w, "%d incomplete: a gateway stopped while writing\n", c.Incomplete)
			}
			for _, seq := range c.Unfinished() {
				_, _ = fmt.Fprintf(w, "line %d has no result: change in progress, or gateway killed\n", seq)
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&head, "head", "", "SHA-256 of a line that the log must contain")
	return cmd
}

// auditPage returns a table with a row for each change.
func auditPage(l *audit.Page, _ asked) (p page) {
	s := sheet{{"seq", "time", "org", "team", "by", "operation", "resource", "name", "usd/h", "status", "carried"}}
	for _, c := range l.Changes {
		by, operation := cmp.Or(c.Key, c.Subject, c.Who), cmp.Or(c.Operation, "loaded "+c.Revision)
		s.add(strconv.FormatInt(c.Seq, 10), c.Time, c.SubjectOrg(), c.Team, by, operation, c.Resource, cmp.Or(c.Name, c.Summary),
			usd(c.PerHour), endOf(&c), c.Carried)
	}
	if p.sheets = []sheet{s}; l.Incomplete != "" {
		p.text = append(p.text, l.Incomplete)
	}
	if l.Next > 0 {
		p.text = append(p.text, fmt.Sprintf("Older changes: --before %d", l.Next))
	}
	return p
}

// endOf returns the status of a change: "open" if its outcome was not recorded, and "" for a configuration change.
func endOf(c *audit.Change) any {
	switch {
	case c.Status > 0:
		return status(c.Status)
	case c.Operation == "" || !c.Ended.IsZero():
		return ""
	}
	return "open"
}
