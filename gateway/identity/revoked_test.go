package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/issuer"
)

// A revocation is of one token of one issuer, or of the tokens that a subject of one was
// issued by a time, give or take the skew; a revocation affects no other token.
func TestRevoked(t *testing.T) {
	w := newWorld(t, nil)
	stranger := issuer.RunT(t)
	mine := func(r identity.Revocation) []identity.Revocation { r.Issuer = w.URL; return []identity.Revocation{r} }
	subject := claims(nil)["sub"].(string)
	token := w.Token(t, claims(issuer.Claims{"jti": "one"}))
	for what, c := range map[string]struct {
		list    []identity.Revocation
		revoked bool
	}{
		"nothing":                  {nil, false},
		"the token":                {mine(identity.Revocation{Token: "one"}), true},
		"another token":            {mine(identity.Revocation{Token: "two"}), false},
		"one of another case":      {mine(identity.Revocation{Token: "ONE"}), false},
		"a subject of its name":    {mine(identity.Revocation{Subject: "one", At: start}), false},
		"that of another issuer":   {[]identity.Revocation{{Issuer: stranger.URL, Token: "one"}}, false},
		"the subject":              {mine(identity.Revocation{Subject: subject, At: start}), true},
		"the subject within skew":  {mine(identity.Revocation{Subject: subject, At: start.Add(-30 * time.Second)}), true},
		"the subject before":       {mine(identity.Revocation{Subject: subject, At: start.Add(-31 * time.Second)}), false},
		"the subject, twice":       {append(mine(identity.Revocation{Subject: subject, At: start}), mine(identity.Revocation{Subject: subject, At: start.Add(-time.Hour)})...), true},
		"a token of its subject's": {mine(identity.Revocation{Token: subject}), false},
	} {
		w.keys.Revoke(nil)
		accepted, err := w.verifier.Verify(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		w.keys.Revoke(c.list)
		if _, err := w.verifier.Verify(t.Context(), token); errors.Is(err, identity.ErrInvalid) != c.revoked {
			t.Errorf("%s revoked: Verify = %v, want it refused: %v", what, err, c.revoked)
		}
		if got := w.verifier.StillAccepts(accepted, start); got == c.revoked {
			t.Errorf("%s revoked: Holds = %v, want %v", what, got, !c.revoked)
		}
	}
	w.keys.SetRevocationsUnknown()
	if _, err := w.verifier.Verify(t.Context(), token); !errors.Is(err, identity.ErrIssuerUnavailable) {
		t.Errorf("while it is not known what is revoked: %v, want %v", err, identity.ErrIssuerUnavailable)
	}
	if _, err := w.verifier.Verify(t.Context(), w.Token(t, claims(issuer.Claims{"aud": "else"}))); !errors.Is(err, identity.ErrInvalid) {
		t.Errorf("a wrong token meanwhile: %v, want %v", err, identity.ErrInvalid)
	}
}
