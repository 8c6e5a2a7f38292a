package v1

import (
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// Brownout writes the refusal of a call that met a scheduled brownout: a 503
// whose text is for the caller to read as it is, and whose Link says what to call
// instead.
func (a *API) Brownout(op string, params map[string]string, text string) *translate.Outgoing {
	f := &fault{status: http.StatusServiceUnavailable, text: text}
	out := &translate.Outgoing{Status: f.status, Header: a.headers(nil, nil)}
	if row := a.byID[op]; row != nil {
		out.Header.Set("Link", row.link(params))
	}
	encode(out, f.body())
	return out
}
