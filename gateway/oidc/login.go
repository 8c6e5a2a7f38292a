package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/oauth2"
)

// Client is this program's registration at an issuer, for people who log in with a browser.
type Client struct {
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

// State returns the state of the login with a proof: the issuer sends it back with the browser.
func State(proof string) string { return derived("state", proof) }

func derived(use, proof string) string {
	sum := sha256.Sum256([]byte(use + " " + proof))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// config returns the client's configuration, with the endpoints that the issuer's discovery document names.
func (c Client) config(ctx context.Context, redirect string) (oauth2.Config, error) {
	d, err := discover(ctx, c.Issuer)
	if err != nil {
		return oauth2.Config{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for name, address := range map[string]string{"authorization_endpoint": d.Authorization, "token_endpoint": d.Token} {
		if err := checkURL(address); err != nil {
			return oauth2.Config{}, fmt.Errorf("%w: discovery: %s %w", ErrUnavailable, name, err)
		}
	}
	return oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, Scopes: c.Scopes, RedirectURL: redirect,
		Endpoint: oauth2.Endpoint{AuthURL: d.Authorization, TokenURL: d.Token},
	}, nil
}

// Begin returns the address to send the browser to, which comes back to redirect. The error is ErrUnavailable.
func (c Client) Begin(ctx context.Context, redirect, proof string) (string, error) {
	config, err := c.config(ctx, redirect)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(State(proof), oauth2.S256ChallengeOption(proof), oauth2.SetAuthURLParam("nonce", derived("nonce", proof))), nil
}

// Finish exchanges the code that the browser came back with for the ID token of the person. The token is not verified but for its nonce.
func (c Client) Finish(ctx context.Context, redirect, proof, code string) (string, error) {
	config, err := c.config(ctx, redirect)
	if err != nil {
		return "", err
	}
	client := clientFor(c.Issuer, config.Endpoint.TokenURL)
	got, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), code, oauth2.VerifierOption(proof))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return "", invalidf("the issuer refused the login: %.100s", refused.ErrorCode)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	token, _ := got.Extra("id_token").(string)
	t, err := parse(token)
	if err != nil {
		return "", err
	}
	if nonce, _ := t.claims.all["nonce"].(string); nonce != derived("nonce", proof) {
		return "", invalidf("it is of another login")
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
