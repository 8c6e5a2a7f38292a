package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

func newTokens() *cobra.Command {
	c := &adminClient{}
	cmd := group("tokens", "Revoke tokens of OpenID Connect issuers", newTokensRevoke(c), newTokensList(c))
	c.flags(cmd)
	return cmd
}

func newTokensRevoke(c *adminClient) *cobra.Command {
	var id, subject string
	cmd := &cobra.Command{
		Use:   "revoke ISSUER (--id JTI | --subject SUB)",
		Short: "Revoke a token, or all that a subject was issued until now, and end their streams",
		Long: `Revokes a token of an issuer, or all that a subject was issued until now: at the
gateway that is asked at once, at all others within two seconds. The issuer is named by
its id in the configuration, or by its URL. A subject that can still get tokens from its
issuer is accepted again with a new one: to keep it out, lock it there.`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if (id == "") == (subject == "") {
				return errors.New("name either a token with --id or a subject with --subject")
			}
			q := url.Values{"issuer": {args[0]}}
			for name, value := range map[string]string{"id": id, "subject": subject} {
				if value != "" {
					q.Set(name, value)
				}
			}
			if err := c.do(cmd.Context(), http.MethodPost, "/admin/tokens/revoke?"+q.Encode(), nil); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "revoked")
			return err
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "claim jti of the token")
	cmd.Flags().StringVar(&subject, "subject", "", "claim sub of the tokens")
	return cmd
}

func newTokensList(c *adminClient) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is revoked, until it is forgotten",
		Args:  cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			var answer struct {
				Revoked []admin.RevokedToken `json:"revoked"`
			}
			if err := c.do(cmd.Context(), http.MethodGet, "/admin/tokens/revoked", &answer); err != nil {
				return err
			}
			t := sheet{{"issuer", "token", "subject", "at", "by", "until"}}
			for _, r := range answer.Revoked {
				t.add(r.Issuer, cmp.Or(printable(r.Token), "-"), cmp.Or(printable(r.Subject), "-"), instant(r.At), r.By, instant(r.Until))
			}
			return list(cmd, asJSON, answer.Revoked, t)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
