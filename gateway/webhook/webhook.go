package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"
	"github.com/cenkalti/backoff/v5"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// Config is one receiver.
type Config struct {
	URL      egress.URL        `yaml:"url" doc:"address of the receiver, https; http on a loopback address that networks lists. Redirects are not followed"`
	Secret   strictyaml.Secret `yaml:"secret" doc:"key that deliveries are signed with, by HMAC-SHA256 in the header webhook-signature; at least 24 bytes"`
	Format   Format            `yaml:"format" doc:"content of a delivery: event is its type, its time and its data; slack is one line of text, for receivers that take incoming webhooks of Slack. Empty is event"`
	Networks []egress.Network  `yaml:"networks" doc:"private networks that the receiver may be in, such as 10.1.0.0/16; without them, it must have a public address"`
}

// Format is the form of a delivery. The zero Format is FormatEvent.
type Format string

// The formats.
const (
	FormatEvent Format = "event"
	FormatSlack Format = "slack"
)

// Values lists the formats.
func (Format) Values() []string { return []string{string(FormatEvent), string(FormatSlack)} }

// minSecret is the least length of a secret that the specification advises.
const minSecret = 24

// Validate reports every fault, each with its path below the section.
func (c *Config) Validate() error {
	if c.URL.IsZero() {
		return nil
	}
	errs := fault.Found{fault.At("url", c.URL.Validate())}
	if err := c.reachable(); err != nil {
		errs = append(errs, fault.At("networks", err))
	}
	errs.If(c.Secret.IsZero() || c.Secret.Resolved() && len(c.Secret.Reveal()) < minSecret, "secret", "must have at least %d bytes", minSecret)
	return errors.Join(errs...)
}

// reachable reports a receiver at a private address, or of a name that only private networks have, that networks does not list.
func (c *Config) reachable() error {
	u, err := url.Parse(c.URL.String())
	if err != nil {
		return nil //nolint:nilerr // a fault of url
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && c.guard().SafeAddr(addr.Unmap()) != nil:
		return fmt.Errorf("must list the network of the receiver, such as %s/%d: nothing is delivered to the private address %s without", addr, addr.BitLen(), addr)
	case err != nil && len(c.Networks) == 0 && privateName(host) && !egress.UsesProxy(u):
		return fmt.Errorf("must list the network of the receiver: %s has no public address, and nothing is delivered to a private one without", host)
	}
	return nil
}

// privateName reports whether a name is one of the zones that public DNS does not have (RFC 6761, 6762, 8375, and ICANN's .internal), of a
// cluster's Services, or has no dots.
func privateName(host string) bool {
	if !strings.Contains(host, ".") {
		return host != ""
	}
	return slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".home.arpa", ".lan", ".svc", ".intranet", ".corp", ".private"}, func(zone string) bool {
		return strings.HasSuffix(host, zone)
	})
}

// guard refuses private addresses, except those in the listed networks.
func (c *Config) guard() *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range c.Networks {
		if p.Addr().Is4() {
			v4 = append(v4, p.Prefix)
		} else {
			v6 = append(v6, p.Prefix)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// Sender delivers to one receiver. It is safe for concurrent use.
type Sender struct {
	url    egress.URL
	format Format
	sign   *webhooks.Webhook
	client *http.Client
	pauses backoff.BackOff
	now    func() time.Time
}

const (
	// tries is how often one delivery is attempted, attemptTimeout bounds each.
	tries          = 6
	attemptTimeout = 10 * time.Second
	// maxSend bounds the attempts of one delivery and the pauses between them. A receiver that asks for a longer
	// pause gets no further attempt.
	maxSend = 2 * time.Minute
	// maxAnswer is how much of an answer is read.
	maxAnswer = 4096
)

// New returns a sender of a valid configuration.
func New(c *Config, now func() time.Time) (*Sender, error) {
	sign, err := webhooks.NewWebhookRaw([]byte(c.Secret.Reveal()))
	if err != nil {
		return nil, err
	}
	client := c.URL.Client(c.guard().Safe, attemptTimeout)
	client.Timeout = attemptTimeout
	return &Sender{url: c.URL, format: c.Format, sign: sign, now: now, pauses: backoff.NewExponentialBackOff(), client: client}, nil
}

// event is the body that a receiver gets.
type event struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// Send delivers an event of a kind that happened at a time, and returns when it was
// delivered or given up. A receiver that gets it twice sees the same id. The error is a
// [backoff.RetryAfterError] if the receiver has asked for a pause.
func (s *Sender) Send(ctx context.Context, id, kind string, at time.Time, data any) error {
	body, err := s.format.body(event{Type: kind, Timestamp: at, Data: data})
	if err != nil {
		return err
	}
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, s.attempt(ctx, id, body) },
		backoff.WithBackOff(s.pauses), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(maxSend))
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// attempt delivers once. A fault that a retry cannot cure is a backoff.PermanentError.
func (s *Sender) attempt(ctx context.Context, id string, body []byte) error {
	now := s.now()
	signature, err := s.sign.Sign(id, now, body)
	if err != nil {
		return backoff.Permanent(err)
	}
	req, err := s.url.Request(ctx, http.MethodPost, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(webhooks.HeaderWebhookID, id)
	req.Header.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(webhooks.HeaderWebhookSignature, signature)
	res, err := s.client.Do(req)
	switch {
	case errors.Is(err, egress.ErrForbidden):
		return backoff.Permanent(errors.New("the receiver has an address that org_bounds does not allow"))
	case errors.Is(err, ssrf.ErrProhibitedIP):
		return backoff.Permanent(errors.New("the receiver has a private address that networks does not list"))
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which may hold a token
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		err := fmt.Errorf("the receiver answered %d", code)
		if after := egress.RetryAfter(res.Header, now); after > 0 {
			err = fmt.Errorf("%w: %w", err, &backoff.RetryAfterError{Duration: after})
		}
		return err
	default:
		return backoff.Permanent(fmt.Errorf("the receiver answered %d", code))
	}
}
