package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Tokens revokes tokens of issuers. Its errors are a BadRequestError, a RefusedError or
// those of the store.
type Tokens interface {
	// Revoked returns the revoked tokens, the oldest first.
	Revoked(ctx context.Context) ([]RevokedToken, error)
	// Revoke revokes the token of an issuer, by its id or URL, that has a jti, or all that
	// a subject was issued until now; by names the revoker.
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

func (d Deps) tokenRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/tokens/revoked", Summary: "Tokens of issuers that are revoked", Role: row.Viewer, Ask: row.Do(d.revokedTokens),
			Commands: []row.Command{{Use: "tokens list", Short: "List revoked tokens, until they are forgotten", Example: "tollgate tokens list"}},
		},
		{
			Pattern: "POST /admin/tokens/revoke", Summary: "Revoke a token of an issuer, or those of a subject that were issued until now", Role: row.Admin, Changes: true, Ask: row.Do(d.revokeToken), Fails: []int{http.StatusNotFound, http.StatusConflict},
			Commands: []row.Command{{
				Use: "tokens revoke ISSUER", Short: "Revoke a token, or all that a subject was issued until now, and end their streams",
				Example: "tollgate tokens revoke corp --id 6f1c9a\ntollgate tokens revoke corp --subject ann@acme.example",
				Long: `Revokes a token of an issuer, or all that a subject was issued until now: at the
gateway that is asked at once, at all others within two seconds. The issuer is named by
its id in the configuration, or by its URL. A subject that can still get tokens from its
issuer is accepted again with a new one: to keep it out, lock it there.`,
			}},
		},
	}
}

func (d Deps) revokedTokens(ctx context.Context, _ row.Scope, _ row.None) (revokedList, error) {
	list, err := d.Tokens.Revoked(ctx)
	return revokedList{list}, err
}

// revoked says which tokens are to be accepted no more.
type revoked struct {
	Issuer  string `query:"issuer,required" doc:"id or URL of an issuer"`
	ID      string `query:"id" doc:"claim jti of the token"`
	Subject string `query:"subject" doc:"claim sub of the tokens"`
}

func (d Deps) revokeToken(ctx context.Context, s row.Scope, p revoked) (RevokedToken, error) {
	if (p.ID == "") == (p.Subject == "") {
		return RevokedToken{}, row.Bad("id", "name either a token by its id or a subject")
	}
	return d.Tokens.Revoke(ctx, p.Issuer, p.ID, p.Subject, s.Author())
}
