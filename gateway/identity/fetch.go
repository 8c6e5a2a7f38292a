package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"code.dny.dev/ssrf"
	"github.com/go-json-experiment/json"

	"github.com/tollgate-dev/tollgate/config/egress"
)

const (
	// timeout is the timeout of reading an issuer's keys.
	timeout = 5 * time.Second
	// maxDocument is the maximum size of a document of an issuer in bytes.
	maxDocument = 1 << 20
)

// fetch reads the keys of the issuer from the configured URL, or from the URL in its discovery document (OpenID Connect
// Discovery 1.0, section 4).
//
// The URL of the issuer in the configuration is trusted. URLs in the discovery document are not: if their host is not the
// issuer's own, it must have a public address.
func (s *keySet) fetch(ctx context.Context) ([]key, error) {
	from, ask := s.jwks, configured
	if from == "" {
		document, err := discover(ctx, s.issuer)
		if err != nil {
			return nil, err
		}
		if err := checkURL(document.JWKS); err != nil {
			return nil, fmt.Errorf("discovery: jwks_uri %w", err)
		}
		from, ask = document.JWKS, clientFor(s.issuer, document.JWKS)
	}
	text, err := get(ctx, ask, from)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return keys, nil
}

// discovered holds the fields of an issuer's discovery document that are used.
type discovered struct {
	Issuer        string   `json:"issuer"`
	JWKS          string   `json:"jwks_uri"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
}

// discover reads the discovery document of an issuer.
func discover(ctx context.Context, issuer string) (document discovered, err error) {
	text, err := get(ctx, configured, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return document, fmt.Errorf("discovery: %w", err)
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return document, errors.New("discovery: invalid document")
	}
	if document.Issuer != issuer {
		return document, fmt.Errorf("discovery: document names a different issuer: %.100q", document.Issuer)
	}
	return document, nil
}

// host returns the host name of a valid URL.
func host(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// configured connects to any host, public only to hosts with a public address.
var (
	configured = egress.NewClient(nil, timeout)
	public     = egress.NewClient(ssrf.New(ssrf.WithAnyPort()).Safe, timeout)
)

// get reads one document.
func get(ctx context.Context, client *http.Client, from string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("issuer responded with status %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("response from the issuer exceeds %d bytes", maxDocument)
	}
	return text, err
}
