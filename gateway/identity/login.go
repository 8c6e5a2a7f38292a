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

// Login is an issuer where people log in with a browser.
type Login struct {
	// ID is the issuer's name in the configuration.
	ID     string
	Client LoginClient
}

// LoginClient is this program's registration at an issuer, for people who log in with a browser.
type LoginClient struct {
	// Issuer is the issuer's URL.
	Issuer string
	ID     string
	// Secret is empty for a client that has none.
	Secret string
	Scopes []string
}

// NewProof returns a random value that ties the beginning of a login to its end. The browser keeps it, and nobody else sees it: it is the
// code verifier (RFC 7636), and state and nonce follow from it.
func NewProof() string { return oauth2.GenerateVerifier() }

// LoginState returns the state of the login with a proof: the issuer sends it back with the browser.
func LoginState(proof string) string { return derived("state", proof) }

func derived(use, proof string) string {
	sum := sha256.Sum256([]byte(use + " " + proof))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Logins begins and ends logins of people at issuers. It remembers the issuers' discovery documents, so that no number of logins makes more
// than a few calls for them. It is safe for concurrent use.
type Logins struct {
	now func() time.Time

	mu        sync.Mutex
	documents map[string]*document // by issuer
}

// NewLogins returns Logins with a clock.
func NewLogins(now func() time.Time) *Logins {
	return &Logins{now: now, documents: make(map[string]*document)}
}

const (
	// documentAge is the age from which a discovery document is read again.
	documentAge = time.Hour
	// maxExchange bounds the time to exchange a code for a token.
	maxExchange = 10 * time.Second
)

// document is the discovery document of one issuer.
type document struct {
	mu          sync.Mutex // held while the document is read
	found       discovered
	good, tried time.Time // when it was read, and when that was last attempted
	fail        error     // of the last attempt
}

// discover returns the discovery document of an issuer. It reads one that is older than documentAge, but at most once in a pause. A document
// that cannot be read again stays known.
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
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout) // others wait for the document, too
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

// config returns the client's configuration, with the endpoints that the issuer's discovery document names.
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

// style returns how the client authenticates to a token endpoint that takes some methods (OpenID Connect Discovery 1.0, section 3): by
// client_secret_basic, which is also the default, or else by client_secret_post. A client without a secret only names itself, in the body.
// One request shows one style: none is tried.
func (c LoginClient) style(methods []string) oauth2.AuthStyle {
	if c.Secret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// Begin returns the address to send the browser to, which comes back to redirect. The error is ErrUnavailable.
func (l *Logins) Begin(ctx context.Context, c LoginClient, redirect, proof string) (string, error) {
	config, err := l.config(ctx, c, redirect)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(LoginState(proof), oauth2.S256ChallengeOption(proof), oauth2.SetAuthURLParam("nonce", derived("nonce", proof))), nil
}

// Finish exchanges the code in the query that the browser came back with for the ID token of the person, by one request. The token is
// verified only as far as it belongs to this login: its nonce, and its authorized party if it names one (OpenID Connect Core 1.0, section
// 3.1.3.7). The error is ErrInvalid or ErrUnavailable.
func (l *Logins) Finish(ctx context.Context, c LoginClient, redirect, proof string, query url.Values) (string, error) {
	if query.Has("iss") && query.Get("iss") != c.Issuer { // RFC 9207, section 2.4
		return "", invalidf("it is of another issuer")
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
		return "", invalidf("the issuer refused the login: %.100s", refused.ErrorCode)
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
		return "", invalidf("it is of another login")
	}
	if party, named := t.claims.all["azp"]; named && party != c.ID {
		return "", invalidf("it was issued to another client")
	}
	return token, nil
}

// clientFor returns the client for an address that an issuer names: another host than the issuer's own must be public.
func clientFor(issuer, address string) *http.Client {
	if host(address) != host(issuer) {
		return public
	}
	return configured
}
