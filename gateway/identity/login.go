package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// Login is an issuer for browser logins of people.
type Login struct {
	// ID is the issuer's id in the configuration.
	ID     string
	Client LoginClient
}

// LoginClient is the gateway's client registration at an issuer for browser logins.
type LoginClient struct {
	// Issuer is the issuer's URL.
	Issuer string
	ID     string
	// Secret is empty for a public client.
	Secret string
	Scopes []string
}

// NewProof returns a random value that connects the end of a login with its beginning. Only the browser stores the proof. The proof is the
// PKCE code verifier (RFC 7636), and state and nonce are derived from it.
func NewProof() string { return oauth2.GenerateVerifier() }

// LoginState returns the state parameter of the login with the given proof. The issuer returns the parameter when it redirects the browser
// back to the gateway.
func LoginState(proof string) string { return derived("state", proof) }

func derived(use, proof string) string {
	sum := sha256.Sum256([]byte(use + " " + proof))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Logins performs browser logins at issuers. It caches the issuers' discovery documents, so that the number of reads does
// not depend on the number of logins. It is safe for concurrent use.
type Logins struct {
	now func() time.Time

	mu        sync.Mutex
	documents map[string]*document // by issuer
}

// NewLogins returns Logins that use the given clock.
func NewLogins(now func() time.Time) *Logins {
	return &Logins{now: now, documents: make(map[string]*document)}
}

const (
	// documentAge is the maximum age of a cached discovery document.
	documentAge = time.Hour
	// maxExchange is the timeout of exchanging a code for a token.
	maxExchange = 10 * time.Second
)

// document caches the discovery document of one issuer.
type document struct {
	mu          sync.Mutex // held while the document is read
	found       discovered
	good, tried time.Time // times of the last successful read and of the last attempt
	fail        error     // error of the last attempt
}

// discover returns the discovery document of an issuer. It reads a document that is older than documentAge again, but
// at most once per minFetchInterval. If the read fails, it returns the old document.
func (l *Logins) discover(ctx context.Context, issuer string) (discovered, error) {
	l.mu.Lock()
	d := l.documents[issuer]
	if d == nil {
		d = new(document)
		l.documents[issuer] = d
	}
	l.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := l.now(); now.Sub(d.good) >= documentAge && now.Sub(d.tried) >= minFetchInterval {
		d.tried = now
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout) // other logins wait for the same read
		defer cancel()
		found, err := discover(reading, issuer)
		if d.fail = err; err == nil {
			d.found, d.good = found, now
		}
	}
	if d.good.IsZero() {
		return discovered{}, d.fail
	}
	return d.found, nil
}

// config returns the client's OAuth configuration with the endpoints from the issuer's discovery document.
func (l *Logins) config(ctx context.Context, c LoginClient, redirect string) (oauth2.Config, error) {
	d, err := l.discover(ctx, c.Issuer)
	if err != nil {
		return oauth2.Config{}, fmt.Errorf("%w: %w", ErrIssuerUnavailable, err)
	}
	for name, address := range map[string]string{"authorization_endpoint": d.Authorization, "token_endpoint": d.Token} {
		if err := checkURL(address); err != nil {
			return oauth2.Config{}, fmt.Errorf("%w: discovery: %s %w", ErrIssuerUnavailable, name, err)
		}
	}
	return oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, Scopes: c.Scopes, RedirectURL: redirect,
		Endpoint: oauth2.Endpoint{AuthURL: d.Authorization, TokenURL: d.Token, AuthStyle: c.style(d.Methods)},
	}, nil
}

// style returns the authentication style for a token endpoint that supports the given methods (OpenID Connect Discovery
// 1.0, section 3): client_secret_basic, which is the default, or client_secret_post. A client without a secret sends only
// its id, in the body. Setting the style avoids probing by trial.
func (c LoginClient) style(methods []string) oauth2.AuthStyle {
	if c.Secret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// Begin returns the issuer's login URL, to which the browser must be sent. After the login, the issuer sends the browser back to the given
// redirect URL. Begin returns ErrIssuerUnavailable if it cannot read the issuer's discovery document.
func (l *Logins) Begin(ctx context.Context, c LoginClient, redirect, proof string) (string, error) {
	config, err := l.config(ctx, c, redirect)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(LoginState(proof), oauth2.S256ChallengeOption(proof),
		oauth2.SetAuthURLParam("nonce", derived("nonce", proof))), nil
}

// Finish sends the authorization code in query to the issuer, and returns the ID token that the issuer issues in exchange. query is the
// query of the redirect. Finish checks that the token belongs to this login: it compares the nonce and, if present, the authorized party
// (OpenID Connect Core 1.0, section 3.1.3.7). It makes no other checks of the token. It returns ErrInvalid if the login failed, and
// ErrIssuerUnavailable if the issuer did not respond.
func (l *Logins) Finish(ctx context.Context, c LoginClient, redirect, proof string, query url.Values) (string, error) {
	if query.Has("iss") && query.Get("iss") != c.Issuer { // RFC 9207, section 2.4
		return "", invalidf("the login response is from issuer %.100q, want %q", query.Get("iss"), c.Issuer)
	}
	config, err := l.config(ctx, c, redirect)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, maxExchange)
	defer cancel()
	client := clientFor(c.Issuer, config.Endpoint.TokenURL)
	got, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), query.Get("code"), oauth2.VerifierOption(proof))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < http.StatusInternalServerError {
		return "", invalidf("issuer refused the login: %.100s", refused.ErrorCode)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrIssuerUnavailable, err)
	}
	token, _ := got.Extra("id_token").(string)
	t, err := parse(token)
	if err != nil {
		return "", err
	}
	if nonce, _ := t.claims.all["nonce"].(string); nonce != derived("nonce", proof) {
		return "", invalidf("belongs to another login")
	}
	if party, named := t.claims.all["azp"]; named && party != c.ID {
		return "", invalidf("issued to another client")
	}
	return token, nil
}

// clientFor returns the HTTP client for a URL from an issuer's discovery document. A host other than the issuer's must be
// public.
func clientFor(issuer, address string) *http.Client {
	if host(address) != host(issuer) {
		return public
	}
	return configured
}
