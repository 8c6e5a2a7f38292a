package oidc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/test/issuer"
)

// A revocation is of one token of one issuer, or of the tokens that a subject of one was
// issued by a time, give or take the skew; a revocation affects no other token.
func TestRevoked(t *testing.T) {
	w := newWorld(t, nil)
	stranger := issuer.RunT(t)
	mine := func(r oidc.Revocation) []oidc.Revocation { r.Issuer = w.URL; return []oidc.Revocation{r} }
	subject := claims(nil)["sub"].(string)
	token := w.Token(t, claims(issuer.Claims{"jti": "one"}))
	for what, c := range map[string]struct {
		list    []oidc.Revocation
		revoked bool
	}{
		"nothing":                  {nil, false},
		"the token":                {mine(oidc.Revocation{Token: "one"}), true},
		"another token":            {mine(oidc.Revocation{Token: "two"}), false},
		"one of another case":      {mine(oidc.Revocation{Token: "ONE"}), false},
		"a subject of its name":    {mine(oidc.Revocation{Subject: "one", At: start}), false},
		"that of another issuer":   {[]oidc.Revocation{{Issuer: stranger.URL, Token: "one"}}, false},
		"the subject":              {mine(oidc.Revocation{Subject: subject, At: start}), true},
		"the subject within skew":  {mine(oidc.Revocation{Subject: subject, At: start.Add(-30 * time.Second)}), true},
		"the subject before":       {mine(oidc.Revocation{Subject: subject, At: start.Add(-31 * time.Second)}), false},
		"the subject, twice":       {append(mine(oidc.Revocation{Subject: subject, At: start}), mine(oidc.Revocation{Subject: subject, At: start.Add(-time.Hour)})...), true},
		"a token of its subject's": {mine(oidc.Revocation{Token: subject}), false},
	} {
		w.keys.Revoke(nil)
		accepted, err := w.verifier.Verify(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		w.keys.Revoke(c.list)
		if _, err := w.verifier.Verify(t.Context(), token); errors.Is(err, oidc.ErrInvalid) != c.revoked {
			t.Errorf("%s revoked: Verify = %v, want it refused: %v", what, err, c.revoked)
		}
		if got := w.verifier.Holds(accepted, start); got == c.revoked {
			t.Errorf("%s revoked: Holds = %v, want %v", what, got, !c.revoked)
		}
	}
	w.keys.Doubt()
	if _, err := w.verifier.Verify(t.Context(), token); !errors.Is(err, oidc.ErrUnavailable) {
		t.Errorf("while it is not known what is revoked: %v, want %v", err, oidc.ErrUnavailable)
	}
	if _, err := w.verifier.Verify(t.Context(), w.Token(t, claims(issuer.Claims{"aud": "else"}))); !errors.Is(err, oidc.ErrInvalid) {
		t.Errorf("a wrong token meanwhile: %v, want %v", err, oidc.ErrInvalid)
	}
}
