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

// The callers' listener of a gateway: the variable that names it, and the address without that.
const (
	gatewayEnv     = "TOLLGATE_GATEWAY"
	defaultGateway = "http://127.0.0.1:8080"
)

// callerClient asks a gateway with the key of a caller.
type callerClient struct {
	base, keyEnv string
	notes        io.Writer // notices beside the answer
	byLogin      bool      // the key is the token of a login
}

// flags adds those of a command that asks.
func (c *callerClient) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.base, "gateway", cmp.Or(os.Getenv(gatewayEnv), defaultGateway), "address of the gateway; "+gatewayEnv+" is another default")
	cmd.Flag("gateway").DefValue = defaultGateway // help does not depend on the environment
	cmd.Flags().StringVar(&c.keyEnv, "key-env", "TOLLGATE_KEY", "variable that holds the caller's key")
}

// key returns the key, or the token of a login.
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
		return "", fmt.Errorf("no key: set %s, or run tollgate login", c.keyEnv)
	case !isConfidential(urlOf(c.base)):
		return "", usagef("--gateway %s: the token of a login is sent by https only", c.base)
	}
	return token, nil
}

// callerTimeout bounds one question, and longestWait how long the gateway may ask to wait
// before the next.
const (
	callerTimeout = 2 * time.Minute
	longestWait   = 10 * time.Minute
)

// get asks the gateway, and again when it said to wait.
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

// getOnce asks once. With an error it returns how long the gateway says to wait, if it
// does.
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
