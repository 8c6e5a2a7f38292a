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

// Config configures one receiver.
type Config struct {
	URL      egress.URL        `yaml:"url" doc:"https URL of the receiver, or http for a loopback address in networks. Redirects are not followed. If empty, no webhook is called"`
	Secret   strictyaml.Secret `yaml:"secret" doc:"key of at least 24 bytes that signs deliveries with HMAC-SHA256 in the header webhook-signature"`
	Format   Format            `yaml:"format" doc:"event (default) sends a JSON object with type, time and data; slack sends a text for Slack incoming webhooks"`
	Networks []egress.Network  `yaml:"networks" doc:"private networks that may contain the receiver, such as 10.1.0.0/16. Other receivers need a public address"`
}

// Format is the format of deliveries. The zero Format is FormatEvent.
type Format string

// Formats of deliveries.
const (
	FormatEvent Format = "event"
	FormatSlack Format = "slack"
)

// Values returns the formats.
func (Format) Values() []string { return []string{string(FormatEvent), string(FormatSlack)} }

// minSecret is the minimum length of a secret recommended by the specification.
const minSecret = 24

// Validate returns all faults of c, joined. Their paths are relative to c.
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

// reachable returns an error if the host of the receiver is a private address that networks does not list, or a name that is used only in
// private networks while networks is empty.
func (c *Config) reachable() error {
	u, err := url.Parse(c.URL.String())
	if err != nil {
		return nil //nolint:nilerr // reported as an error of url
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && c.guard().SafeAddr(addr.Unmap()) != nil:
		return fmt.Errorf("must list the network of the receiver, such as %s/%d, to allow deliveries to the private address %s",
			addr, addr.BitLen(), addr)
	case err != nil && len(c.Networks) == 0 && privateName(host) && !egress.UsesProxy(u):
		return fmt.Errorf("must list the network of the receiver, because %s is a private host name", host)
	}
	return nil
}

// privateName reports whether a name has no dots, belongs to a zone that public DNS does not have (RFC 6761, 6762 and 8375, and ICANN's
// .internal), or names a Service of a cluster.
func privateName(host string) bool {
	if !strings.Contains(host, ".") {
		return host != ""
	}
	return slices.ContainsFunc([]string{
		".localhost", ".local", ".internal", ".home.arpa", ".lan", ".svc", ".intranet", ".corp",
		".private",
	}, func(zone string) bool {
		return strings.HasSuffix(host, zone)
	})
}

// guard returns a dialer check that refuses private addresses, except those in the listed networks.
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

// Sender delivers events to one receiver. It is safe for concurrent use.
type Sender struct {
	url    egress.URL
	format Format
	sign   *webhooks.Webhook
	client *http.Client
	pauses backoff.BackOff
	now    func() time.Time
}

const (
	// tries is the number of attempts per delivery, and attemptTimeout the time limit of each attempt.
	tries          = 6
	attemptTimeout = 10 * time.Second
	// maxSend is the time limit of a delivery, including the pauses between attempts. If a receiver requests a longer pause, there are no
	// further attempts.
	maxSend = 2 * time.Minute
	// maxAnswer is the number of bytes of a response that are read.
	maxAnswer = 4096
)

// New returns a Sender. c must be valid; see [Config.Validate]. now is the clock.
func New(c *Config, now func() time.Time) (*Sender, error) {
	sign, err := webhooks.NewWebhookRaw([]byte(c.Secret.Reveal()))
	if err != nil {
		return nil, err
	}
	client := c.URL.Client(c.guard().Safe, attemptTimeout)
	client.Timeout = attemptTimeout
	return &Sender{url: c.URL, format: c.Format, sign: sign, now: now, pauses: backoff.NewExponentialBackOff(), client: client}, nil
}

// event is the body sent to the receiver.
type event struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// Send delivers an event. kind is the type of the event, and at is its time. Send returns when the event is delivered or all attempts have
// failed. If the receiver gets an event several times, the ID is the same. If the receiver has requested a pause, the error is a
// [backoff.RetryAfterError].
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

// attempt makes one delivery attempt. An error that a retry cannot resolve is a backoff.PermanentError.
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
		return backoff.Permanent(errors.New("receiver address is not allowed by org_bounds"))
	case errors.Is(err, ssrf.ErrProhibitedIP):
		return backoff.Permanent(errors.New("receiver has a private address that is not listed in networks"))
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL is dropped, because it may contain a token
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		err := fmt.Errorf("receiver responded with status %d", code)
		if after := egress.RetryAfter(res.Header, now); after > 0 {
			err = fmt.Errorf("%w: %w", err, &backoff.RetryAfterError{Duration: after})
		}
		return err
	default:
		return backoff.Permanent(fmt.Errorf("receiver responded with status %d", code))
	}
}
