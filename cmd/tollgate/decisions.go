package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// decisionFlags is what the command line of decisions says.
type decisionFlags struct {
	adminClient
	org, team, key string
	refused, own   bool
	since          time.Duration
	limit          int
	asJSON         bool
}

func newDecisions() *cobra.Command {
	f := &decisionFlags{}
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "List what was decided, by any gateway",
		Long: `Lists the latest exchanges, newest first: those of the gateway that is asked, and
of all that share its Redis what was refused, warned of or excepted, or changed
something (decisions.shared). "tollgate explain ID" tells how each came about.`,
		Example: `  tollgate decisions --org acme --team research --denied --since 24h`,
		Args:    cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.org, "org", "", "organisation")
	flags.StringVar(&f.team, "team", "", "team")
	flags.StringVar(&f.key, "key-id", "", "id of the caller's key")
	flags.BoolVar(&f.refused, "denied", false, "only what was refused")
	flags.BoolVar(&f.own, "own", false, "only what the gateways did by themselves: pods stopped, reservations ended")
	flags.DurationVar(&f.since, "since", 0, "only what is no older, e.g. 24h")
	flags.IntVar(&f.limit, "limit", 50, "how many at most")
	f.adminClient.flags(cmd)
	flags.BoolVar(&f.asJSON, "json", false, "write JSON")
	return cmd
}

// decisionList is what the admin listener answers.
type decisionList struct {
	Decisions  []explain.Summary `json:"decisions"`
	Incomplete string            `json:"incomplete,omitempty"`
}

func (f *decisionFlags) run(cmd *cobra.Command) error {
	if f.since < 0 {
		return errors.New("--since: must not be negative")
	}
	query := url.Values{"org": {f.org}, "team": {f.team}, "key": {f.key}, "limit": {strconv.Itoa(f.limit)}}
	if f.refused {
		query.Set("refused", "true")
	}
	if f.own {
		query.Set("own", "true")
	}
	if f.since > 0 {
		query.Set("since", time.Now().Add(-f.since).UTC().Format(time.RFC3339))
	}
	var answer decisionList
	if err := f.do(cmd.Context(), http.MethodGet, "/admin/decisions?"+query.Encode(), &answer); err != nil {
		return err
	}
	if answer.Incomplete != "" {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), answer.Incomplete)
	}
	t := sheet{{"decision", "time", "org", "team", "key", "operation", "status", "policies"}}
	for _, s := range answer.Decisions {
		var said []string
		if s.Own != nil {
			said = append(said, s.Own.Did)
		}
		for _, part := range []struct {
			word string
			list []string
		}{{"denied", s.Denied}, {"warned", s.Warned}, {"shadow", s.Shadowed}, {"excepted", s.Excepted}, {"changed", s.Changed}} {
			if len(part.list) > 0 {
				said = append(said, part.word+" "+strings.Join(part.list, ", "))
			}
		}
		t.add(s.DecisionID, s.Time.UTC().Format("01-02 15:04:05"),
			s.Org, s.Team, s.Key, s.Dialect+" "+s.Operation, s.Status, strings.Join(said, "; "))
	}
	return list(cmd, f.asJSON, answer.Decisions, t)
}
