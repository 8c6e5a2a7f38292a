package callers

import (
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

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

// RevocationList is a list of revoked tokens, the oldest first.
type RevocationList struct {
	Revoked []RevokedToken `json:"revoked"`
}

// Rows are the questions of operators about revoked tokens. A nil Tokens describes them.
func (t *Tokens) Rows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/tokens/revoked", Summary: "Tokens of issuers that are revoked", Role: row.Viewer, Ask: row.Do(t.list),
			Commands: []row.Command{{Use: "tokens list", Short: "List revoked tokens, until they are forgotten", Example: "tollgate tokens list"}},
		},
		{
			Pattern: "POST /admin/tokens/revoke", Summary: "Revoke a token of an issuer, or those of a subject that were issued until now", Role: row.Admin, Changes: true, Ask: row.Do(t.revoke), Fails: []int{http.StatusNotFound, http.StatusConflict},
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

// revokeParams says which tokens are to be accepted no more.
type revokeParams struct {
	Issuer  string `query:"issuer,required" doc:"id or URL of an issuer"`
	ID      string `query:"id" doc:"claim jti of the token"`
	Subject string `query:"subject" doc:"claim sub of the tokens"`
}
