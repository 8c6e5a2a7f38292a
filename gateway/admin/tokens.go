package admin

import (
	"context"
	"net/http"
	"time"
)

// Tokens revokes tokens of issuers. Its errors are a BadRequestError, a RefusedError or
// those of the store.
type Tokens interface {
	// Revoked returns what is revoked, the oldest first.
	Revoked(ctx context.Context) ([]RevokedToken, error)
	// Revoke revokes the token of an issuer, by its id or URL, that has a jti, or all that
	// a subject was issued until now; by is who does.
	Revoke(ctx context.Context, issuer, token, subject, by string) (RevokedToken, error)
}

// RevokedToken is tokens of an issuer that are accepted no more.
type RevokedToken struct {
	Issuer  string `json:"issuer"`            // its URL
	Token   string `json:"token,omitempty"`   // the jti of one
	Subject string `json:"subject,omitempty"` // the sub of all that were issued until At
	// At is when that was done, By who did it. Until is when it is forgotten, because none
	// of the tokens can be accepted any more.
	At    time.Time `json:"at"`
	By    string    `json:"by"`
	Until time.Time `json:"until"`
}

// revokedList is a list of them as it is answered.
type revokedList struct {
	Revoked []RevokedToken `json:"revoked"`
}

func (d Deps) revokedTokens(r *http.Request) (any, error) {
	list, err := d.Tokens.Revoked(r.Context())
	return revokedList{list}, err
}

func (d Deps) revokeToken(r *http.Request) (any, error) {
	q := r.URL.Query()
	return d.Tokens.Revoke(r.Context(), q.Get("issuer"), q.Get("id"), q.Get("subject"), asking(r).author())
}
