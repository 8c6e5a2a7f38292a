package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newLimits() *cobra.Command {
	cmd := group("limits", "Show and reset the limits of a running gateway")
	c := newAdminClient(cmd)
	var scope string
	reset := &cobra.Command{
		Use:   "reset ORG",
		Short: "Set the counts of an organisation, or of one scope, to nothing",
		Args:  cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			q := url.Values{"org": {args[0]}}
			if scope != "" {
				q.Set("scope", scope)
			}
			return c.do(cmd.Context(), http.MethodPost, "/admin/limits/reset?"+q.Encode(), nil)
		}),
	}
	reset.Flags().StringVar(&scope, "scope", "", "only this scope, e.g. key:ann-laptop, team:research, org:acme")
	cmd.AddCommand(reset, &cobra.Command{
		Use:   "show ORG",
		Short: "Show the windows in use, what is left, and who holds leases",
		Args:  cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return showLimits(cmd.Context(), c, args[0], cmd.OutOrStdout())
		}),
	})
	return cmd
}

func showLimits(ctx context.Context, c *adminClient, org string, w io.Writer) error {
	var answer struct {
		Windows []struct {
			Scope, Window          string
			Limit, Used, Remaining int64
			ResetSeconds           int64
			Leases                 []struct {
				Gateway string
				Held    int64
			}
		}
	}
	if err := c.do(ctx, http.MethodGet, "/admin/limits?"+url.Values{"org": {org}}.Encode(), &answer); err != nil {
		return err
	}
	t := sheet{{"scope", "window", "used", "limit", "left", "resets in", "leased"}}
	for _, row := range answer.Windows {
		limit, left := "none", ""
		if row.Limit > 0 {
			limit, left = strconv.FormatInt(row.Limit, 10), strconv.FormatInt(row.Remaining, 10)
		}
		var leases []string
		for _, l := range row.Leases {
			leases = append(leases, fmt.Sprintf("%s: %d", l.Gateway, l.Held))
		}
		t.add(row.Scope, row.Window, row.Used, limit, left, time.Duration(row.ResetSeconds)*time.Second, strings.Join(leases, ", "))
	}
	return t.print(w)
}

// adminClient talks to the admin listener of a gateway.
type adminClient struct{ base, tokenEnv string }

// newAdminClient returns the client of a command and its subcommands.
func newAdminClient(cmd *cobra.Command) *adminClient {
	c := &adminClient{}
	c.flags(cmd)
	return c
}

func (c *adminClient) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.base, "admin", "http://127.0.0.1:8081", "address of the gateway's admin listener")
	f.StringVar(&c.tokenEnv, "token-env", "TOLLGATE_ADMIN_TOKEN", "variable that holds the admin token, if one is configured")
}

// adminTimeout bounds one question.
const adminTimeout = 40 * time.Second

// do asks once and decodes a JSON answer into out, unless that is nil.
func (c *adminClient) do(ctx context.Context, method, target string, out any) error {
	return c.send(ctx, method, target, nil, out)
}

// send is do with a body.
func (c *adminClient) send(ctx context.Context, method, target string, question io.Reader, out any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	res, err := c.open(ctx, method, target, question)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(body, out)
}

// copy writes an answer of any size as it comes.
func (c *adminClient) copy(ctx context.Context, target string, w io.Writer) error {
	res, err := c.open(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(w, res.Body)
	return err
}

// maxAnswer bounds an answer that is read whole.
const maxAnswer = 64 << 20

// open makes a request. The caller closes the body of its answer, which is none of a
// fault.
func (c *adminClient) open(ctx context.Context, method, target string, question io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+target, question)
	if err != nil {
		return nil, err
	}
	if token := os.Getenv(c.tokenEnv); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := new(http.Client).Do(req)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var problem struct{ Detail string }
	if json.Unmarshal(body, &problem) != nil || problem.Detail == "" {
		problem.Detail = res.Status
	}
	return nil, errors.New(problem.Detail)
}
