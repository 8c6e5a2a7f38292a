package v1

import (
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// Brownout encodes the refusal of a call during a scheduled brownout: a 503 with the given text, and a Link to the v2
// successor.
func (a *API) Brownout(op string, params map[string]string, text string) *translate.Outgoing {
	f := &fault{status: http.StatusServiceUnavailable, text: text}
	out := &translate.Outgoing{Status: f.status, Header: a.headers(nil, nil)}
	if row := a.byID[op]; row != nil {
		out.Header.Set("Link", row.link(params))
	}
	encode(out, f.body())
	return out
}
