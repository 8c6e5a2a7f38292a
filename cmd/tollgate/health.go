package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/config/encryption"
)

func newHealth() *cobra.Command {
	var path, base string
	var live bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether a gateway on this host is ready",
		Long: `Requests /readyz of the admin listener, or /livez with --live. Exits with 0 if the
response is 200, with 1 for any other or missing response, and with 2 if the command
line is invalid. Use it for probes in images without a shell.

With --config, the address is admin.listen of the file. Faults elsewhere in the file
are ignored, because a gateway keeps its configuration while the file has a fault.
The probe sends no secret and does not verify the certificate of the listener, which
rarely names this host.`,
		Example: `  tollgate health -c tollgate.yaml
  tollgate health --admin http://127.0.0.1:8081 --live`,
		Args: named(nil),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if path != "" {
				var err error
				if base, err = config.AdminURL(path); err != nil {
					return err
				}
			}
			if live {
				return probe(ctx, urlOf(base)+"/livez", cmd.OutOrStdout())
			}
			return probe(ctx, urlOf(base)+"/readyz", cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", "", "configuration file with the address")
	adminFlag(cmd, &base)
	cmd.Flags().BoolVar(&live, "live", false, "check liveness instead of readiness")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "time to wait for the response")
	cmd.MarkFlagsMutuallyExclusive("config", "admin")
	return cmd
}

// probe requests a probe once and writes the response. It returns an error for any status other than 200.
func probe(ctx context.Context, url string, stdout io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	c := encryption.Config()
	c.InsecureSkipVerify = true // no secret is sent, and the address is this host
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: c}}
	res, err := client.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: no response within the timeout", url)
	} else if err != nil {
		return unreachable(url, err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct{ Status string }
	if json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&answer) != nil || answer.Status == "" {
		answer.Status = res.Status
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	_, err = fmt.Fprintln(stdout, answer.Status)
	return err
}
