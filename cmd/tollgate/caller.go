package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// The name of the environment variable with the address of a gateway's listener for callers, and the default address.
const (
	gatewayEnv     = "TOLLGATE_GATEWAY"
	defaultGateway = "http://127.0.0.1:8080"
)

// callerClient sends requests to a gateway with a caller's key.
type callerClient struct {
	base, keyEnv string
	notes        io.Writer // receives notices
	byLogin      bool      // the key is a token obtained by login
}

// flags adds the flags for the gateway.
func (c *callerClient) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.base, "gateway", cmp.Or(os.Getenv(gatewayEnv), defaultGateway),
		"address of the gateway; $"+gatewayEnv+" overrides the default")
	cmd.Flag("gateway").DefValue = defaultGateway // help must not depend on the environment
	cmd.Flags().StringVar(&c.keyEnv, "key-env", "TOLLGATE_KEY", "environment variable that contains the caller's key")
}

// key returns the caller's key, or the token of a login.
func (c *callerClient) key(ctx context.Context) (string, error) {
	if key := os.Getenv(c.keyEnv); key != "" {
		return key, nil
	}
	c.byLogin = true
	token, err := storedToken(ctx, c.notes)
	switch {
	case err != nil:
		return "", err
	case token == "":
		return "", fmt.Errorf("key required: set %s, or run tollgate login", c.keyEnv)
	case !isConfidential(urlOf(c.base)):
		return "", usagef("--gateway %s: tokens of a login are only sent over https", c.base)
	}
	return token, nil
}

// read returns the response to a GET request with the caller's key.
func (c *callerClient) read(cmd *cobra.Command, target string) (text json.RawMessage, err error) {
	c.notes = cmd.ErrOrStderr()
	key, err := c.key(cmd.Context())
	if err == nil {
		err = c.get(cmd.Context(), key, target, &text)
	}
	return text, err
}

// callerTimeout is the time limit of one request. longestWait is the longest pause before a retry that callerClient accepts from the
// gateway.
const (
	callerTimeout = 2 * time.Minute
	longestWait   = 10 * time.Minute
)

// get sends a request. If the gateway refuses the request and asks for a pause, get waits and repeats the request.
func (c *callerClient) get(ctx context.Context, key, target string, out any) error {
	for {
		wait, err := c.getOnce(ctx, key, target, out)
		if wait == nil || *wait > longestWait {
			return err
		}
		_, _ = fmt.Fprintf(c.notes, "%v: waiting for %s\n", err, *wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(*wait):
		}
	}
}

// getOnce sends one request. If the gateway requests a pause before a retry, wait is that pause; otherwise wait is nil.
func (c *callerClient) getOnce(ctx context.Context, key, target string, out any) (wait *time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, urlOf(c.base)+target, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := new(http.Client).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	decoder := json.NewDecoder(res.Body)
	decoder.UseNumber()
	if res.StatusCode < http.StatusBadRequest {
		return nil, decoder.Decode(out)
	}
	var refusal struct{ Title, Detail string }
	_ = decoder.Decode(&refusal)
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		wait = new(time.Duration(seconds) * time.Second)
	}
	return wait, errors.New(cmp.Or(refusal.Detail, refusal.Title, res.Status))
}
