package v1

import (
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// Brownout encodes the refusal of the operation op during a scheduled brownout: a 503 with the given text, and a Link to the operation that
// replaces op.
func (a *API) Brownout(op string, params map[string]string, text string) *translate.Outgoing {
	link := docsLink
	if row := a.byID[op]; row != nil {
		link = row.link(params)
	}
	return a.refusal(&fault{status: http.StatusServiceUnavailable, text: text}, link)
}
