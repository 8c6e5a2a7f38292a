package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// The names of the environment variables with the address of a gateway's admin listener and with its token.
const (
	adminEnv = "TOLLGATE_ADMIN"
	tokenEnv = "TOLLGATE_ADMIN_TOKEN" //nolint:gosec // the name of a variable
)

// defaultAdmin is the address of the admin listener of a gateway on this host.
const defaultAdmin = "http://127.0.0.1:8081"

// adminFlag adds --admin to a command.
func adminFlag(cmd *cobra.Command, base *string) {
	cmd.Flags().StringVar(base, "admin", cmp.Or(os.Getenv(adminEnv), defaultAdmin),
		"address of the gateway's admin listener; see tollgate --help")
	cmd.Flag("admin").DefValue = defaultAdmin // help must not depend on the environment
}

// urlOf returns an address as a URL. The default scheme is http.
func urlOf(address string) string {
	if address = strings.TrimSuffix(address, "/"); !strings.Contains(address, "://") {
		return "http://" + address
	}
	return address
}

// adminClient sends requests to the admin listener of a gateway.
type adminClient struct{ base string }

// newAdminClient returns a client for a command, and adds the flag --admin.
func newAdminClient(cmd *cobra.Command) *adminClient {
	c := &adminClient{}
	adminFlag(cmd, &c.base)
	return c
}

// adminTimeout limits one request.
const adminTimeout = 40 * time.Second

// get sends a GET request and decodes the response into out.
func (c *adminClient) get(ctx context.Context, path string, q url.Values, out any) error {
	return c.do(ctx, http.MethodGet, path+"?"+q.Encode(), nil, out)
}

// post sends a POST request without a body and decodes the response into out.
func (c *adminClient) post(ctx context.Context, path string, q url.Values, out any) error {
	return c.do(ctx, http.MethodPost, path+"?"+q.Encode(), nil, out)
}

// do sends one request, whose body may be nil, and decodes the JSON response into out.
func (c *adminClient) do(ctx context.Context, method, target string, question io.Reader, out any) error {
	body, err := c.read(ctx, method, target, question)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, out)
}

// read returns the whole response body.
func (c *adminClient) read(ctx context.Context, method, target string, question io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	res, err := c.open(ctx, method, target, question)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return io.ReadAll(io.LimitReader(res.Body, maxAnswer))
}

// copy streams a response of any size to w.
func (c *adminClient) copy(ctx context.Context, target string, w io.Writer) error {
	res, err := c.open(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(w, res.Body)
	return err
}

// maxAnswer limits a response that is read into memory.
const maxAnswer = 64 << 20

// open sends a request. The caller must close the body of the response. An error status is returned as an error.
func (c *adminClient) open(ctx context.Context, method, target string, question io.Reader) (*http.Response, error) {
	base := urlOf(c.base)
	req, err := http.NewRequestWithContext(ctx, method, base+target, question)
	if err != nil {
		return nil, fmt.Errorf("--admin %s: %w", c.base, err)
	}
	if token := os.Getenv(tokenEnv); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := new(http.Client).Do(req)
	if err != nil {
		return nil, unreachable(base, err)
	}
	if res.StatusCode < http.StatusBadRequest {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var problem struct {
		Detail string
		Errors []json.RawMessage
	}
	if json.Unmarshal(bytes.TrimSpace(body), &problem) != nil || problem.Detail == "" {
		return nil, fmt.Errorf("%s answered %s and is not the admin listener of a gateway: set the listener's address with --admin or %s",
			base, res.Status, adminEnv)
	}
	if res.StatusCode == http.StatusUnauthorized {
		problem.Detail += ": set the token in " + tokenEnv
	}
	if res.StatusCode == http.StatusBadRequest && len(problem.Errors) > 0 { // faults of parameters
		return nil, usageError{errors.New(problem.Detail)}
	}
	return nil, errors.New(problem.Detail)
}

// unreachable returns the error for a gateway that did not respond at the address base, or whose certificate is not trusted. It contains
// the cause and the next step.
func unreachable(base string, err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("cannot trust %s (%w): renew the certificate, use an address that it names, or set SSL_CERT_FILE to its authority", base, err)
	}
	return fmt.Errorf("no gateway responded at %s (%w): set the address of the admin listener with --admin or %s", base, err, adminEnv)
}
