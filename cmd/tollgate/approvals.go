package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/approval"
)

func newApprovals() *cobra.Command {
	c := &adminClient{}
	cmd := group("approvals", "Show and answer requests to approve single calls that were refused",
		newApprovalsList(c), newApprovalsGrant(c), newApprovalsDeny(c))
	c.flags(cmd)
	return cmd
}

func newApprovalsList(c *adminClient) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list ORG",
		Short: "Show what waits for an answer, and what was answered of late",
		Args:  cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			var answer struct {
				Approvals []approval.Record `json:"approvals"`
			}
			if err := c.do(cmd.Context(), http.MethodGet, "/admin/approvals?"+url.Values{"org": {args[0]}}.Encode(), &answer); err != nil {
				return err
			}
			return list(cmd, asJSON, answer.Approvals, approvalSheet(answer.Approvals))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func approvalSheet(list []approval.Record) sheet {
	t := sheet{{"approval", "state", "until", "caller", "call", "asks", "usd", "refused by", "answered by", "used by"}}
	for _, r := range list {
		by := make([]string, len(r.Refusals))
		for i, refusal := range r.Refusals {
			by[i] = refusal.By
		}
		answered := ""
		if r.Answer != nil {
			answered = r.Answer.By
		}
		t.add(r.ID, r.State, r.Until.UTC().Format(time.DateTime), owner(r.Team, r.Key), r.Call, cmp.Or(printable(r.Asks), "-"), priceOf(r.USD, r.Per), strings.Join(by, ", "), printable(answered), r.UsedBy)
	}
	return t
}

// priceOf is a price with what it is for, e.g. "0.43274/hour".
func priceOf(usd string, per approval.Unit) string {
	if usd == "" {
		return "unknown"
	}
	return usd + "/" + string(per)
}

// approvalAnswer is the command line of an answer.
type approvalAnswer struct {
	by, reason, most string
	length           time.Duration
}

func (a *approvalAnswer) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.by, "by", "", "who answers, for the record; required with the shared admin token, and otherwise the name of the token's admin")
	cmd.Flags().StringVar(&a.reason, "reason", "", "why; of a denial, the caller is told")
}

func (a *approvalAnswer) send(ctx context.Context, c *adminClient, verb string, args []string) (approval.Record, error) {
	q := url.Values{"org": {args[0]}, "id": {args[1]}, "by": {a.by}, "reason": {a.reason}}
	if a.length != 0 {
		q.Set("for", a.length.String())
	}
	if a.most != "" {
		q.Set("max_usd", a.most)
	}
	var r approval.Record
	err := c.do(ctx, http.MethodPost, "/admin/approvals/"+verb+"?"+q.Encode(), &r)
	return r, err
}

func newApprovalsGrant(c *adminClient) *cobra.Command {
	var a approvalAnswer
	cmd := &cobra.Command{
		Use:   "grant ORG ID",
		Short: "Let the caller make the refused call, once",
		Long: `Lets the caller of a refused call make it once more: the very same call, for
at most a price, within a time. It passes what it was refused by and nothing else:
other policies, budgets and limits hold.`,
		Args: cobra.ExactArgs(2),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			r, err := a.send(cmd.Context(), c, "grant", args)
			if err != nil {
				return err
			}
			price := "of unknown price"
			if r.Answer.MaxUSD != "" {
				price = fmt.Sprintf("for at most %s USD per %s", r.Answer.MaxUSD, r.Per)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s may make %s once until %s, %s\n",
				r.ID, owner(r.Team, r.Key), r.Call, r.Until.UTC().Format(time.RFC3339), price)
			return err
		}),
	}
	a.flags(cmd)
	cmd.Flags().DurationVar(&a.length, "for", 0, "how long the grant can be used, at most a week (default 1h)")
	cmd.Flags().StringVar(&a.most, "max-usd", "", "the most the call may cost, per hour or run (default: what it cost when it was refused)")
	return cmd
}

func newApprovalsDeny(c *adminClient) *cobra.Command {
	var a approvalAnswer
	cmd := &cobra.Command{
		Use:   "deny ORG ID",
		Short: "Refuse a request, or take back a grant that was not used",
		Args:  cobra.ExactArgs(2),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			r, err := a.send(cmd.Context(), c, "deny", args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: denied until %s\n", r.ID, r.Until.UTC().Format(time.RFC3339))
			return err
		}),
	}
	a.flags(cmd)
	return cmd
}
