package callers

import (
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// RevokedToken is a revocation of one or more tokens of an issuer.
type RevokedToken struct {
	Issuer  string `json:"issuer"`            // URL of the issuer
	Token   string `json:"token,omitempty"`   // jti of one token
	Subject string `json:"subject,omitempty"` // sub of all tokens issued until At
	// At is the time of the revocation and By its author. Until is the time when the revocation is deleted, because
	// all revoked tokens have expired.
	At    time.Time `json:"at"`
	By    string    `json:"by"`
	Until time.Time `json:"until"`
}

// revocationList is a list of revoked tokens, oldest first.
type revocationList struct {
	Revoked []RevokedToken `json:"revoked"`
}

// Endpoints returns the admin API endpoints for revoked tokens. The endpoints of a nil Tokens can be listed but
// not called.
func (t *Tokens) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/tokens/revoked", Summary: "List revoked tokens", Role: adminapi.Viewer, Handler: adminapi.HandlerFor(t.list),
			Commands: []adminapi.Command{{
				Use: "tokens list", Heading: "Access", Group: "Revoke tokens of OpenID Connect issuers",
				Short: "List revoked tokens that have not expired", Example: "tollgate tokens list",
			}},
		},
		{
			Pattern: "POST /admin/tokens/revoke", Summary: "Revoke a token, or all tokens issued to a subject so far", Role: adminapi.Admin,
			Mutates: true, Handler: adminapi.HandlerFor(t.revoke), ErrorStatuses: []int{http.StatusNotFound, http.StatusConflict},
			Commands: []adminapi.Command{{
				Use: "tokens revoke ISSUER", Short: "Revoke a token, or all tokens issued to a subject so far, and close their streams",
				Example: "tollgate tokens revoke corp --id 6f1c9a\ntollgate tokens revoke corp --subject ann@acme.example",
				Long: `Revokes a token of an issuer, or all tokens issued to a subject so far. The revocation
takes effect immediately at the queried gateway and within two seconds at all others.
Specify the issuer by its id in the configuration or by its URL. A subject that can
still get tokens is accepted with a new token. To lock it out, disable it at the issuer.`,
			}},
		},
	}
}

// revokeParams holds the parameters of a revocation.
type revokeParams struct {
	Issuer  string `query:"issuer,required" doc:"id or URL of the issuer"`
	ID      string `query:"id" doc:"value of the token's jti claim"`
	Subject string `query:"subject" doc:"value of the sub claim in the tokens"`
}
