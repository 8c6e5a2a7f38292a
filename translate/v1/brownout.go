package v1

import (
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// Brownout writes the refusal of a call that met a scheduled brownout: a 503
// whose text is for the caller to read, unlike that of any other 5xx.
func (a *API) Brownout(text string) *translate.Outgoing {
	f := &fault{status: http.StatusServiceUnavailable, text: text}
	out := &translate.Outgoing{Status: f.status, Header: a.headers(nil, nil)}
	encode(out, f.body())
	return out
}
