package graphql

import (
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// codeBrownout distinguishes a deliberate refusal from a failure.
const codeBrownout = "BROWNOUT"

// Brownout encodes the refusal of a request during a scheduled brownout. The status is 503, so that clients treat the request as failed
// regardless of the body.
func (a *API) Brownout(_ string, _ map[string]string, text string) *translate.Outgoing {
	return a.refused(http.StatusServiceUnavailable, newFault(text, codeBrownout, http.StatusServiceUnavailable))
}
