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
	// timeout bounds reading the keys of an issuer.
	timeout = 5 * time.Second
	// maxDocument bounds each document of an issuer, in bytes.
	maxDocument = 1 << 20
)

// fetch reads the keys of the issuer: from where its discovery document says (OpenID
// Connect Discovery 1.0, section 4), unless the configuration says where.
//
// The configuration is believed about where the issuer is. The issuer is not: a host
// that is neither the issuer's own nor configured must have a public address.
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

// discovered holds the members read of an issuer's discovery document.
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
		return document, errors.New("discovery: the document cannot be read")
	}
	if document.Issuer != issuer {
		return document, fmt.Errorf("discovery: the document is of issuer %.100q", document.Issuer)
	}
	return document, nil
}

// host is the host name of a valid URL.
func host(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// configured asks any host, public only those with a public address.
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
		return nil, fmt.Errorf("the issuer answered %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("the issuer's answer has more than %d bytes", maxDocument)
	}
	return text, err
}
