package graphql

import (
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// codeBrownout distinguishes a deliberate refusal from a failure.
const codeBrownout = "BROWNOUT"

// Brownout encodes the refusal of a request during a scheduled brownout: a 503, which clients treat as a failed request
// whatever its body.
func (a *API) Brownout(_ string, _ map[string]string, text string) *translate.Outgoing {
	return a.refused(http.StatusServiceUnavailable, &fault{message: text, code: codeBrownout, status: http.StatusServiceUnavailable})
}
