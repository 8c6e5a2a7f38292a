package graphql

import (
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// codeBrownout tells a refusal on purpose from a fault.
const codeBrownout = "BROWNOUT"

// Brownout writes the refusal of a request that met a scheduled brownout. It is
// a 503, which clients take for a failed request, with any body.
func (a *API) Brownout(_ string, _ map[string]string, text string) *translate.Outgoing {
	return a.refused(http.StatusServiceUnavailable, &fault{message: text, code: codeBrownout, status: http.StatusServiceUnavailable})
}
