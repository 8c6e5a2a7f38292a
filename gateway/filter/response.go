package filter

import (
	"cmp"
	"io"
	"net/http"

	"github.com/dunglas/httpsfv"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Response headers with the cost of a call and the fullest of the caller's budgets after it. The cost is in USD per hour, or in USD for a
// run. The budget is an RFC 9651 item such as "team research per_day";limit=50.0;left=12.5;reached=75, where reached is the highest alert
// threshold reached, in percent.
const (
	HeaderCost   = "X-Tollgate-Cost"
	HeaderBudget = "X-Tollgate-Budget"
)

// Response is the response to an exchange: a refusal, a response of the gateway itself or of a translator, or the platform's response.
type Response struct {
	Status int
	Header http.Header
	// Body is the complete body. If Stream is not nil, it is sent instead.
	Body   []byte
	Stream io.ReadCloser
	// Tunnel is the connection to the worker after a WebSocket upgrade, nil for other responses. The HTTP server closes it.
	Tunnel io.ReadWriteCloser
	// Relayed reports whether the response came from the platform.
	Relayed bool
	// Failed reports whether the response describes an error regardless of its status, as GraphQL responses do.
	Failed bool

	// read caches the result of document for the bytes in of.
	read struct {
		of  []byte
		doc any
		err error
	}
}

// document returns the decoded JSON body. The result is cached and shared between stages, so callers must not change it.
func (a *Response) document() (any, error) {
	if of := a.read.of; len(of) == 0 || len(of) != len(a.Body) || &of[0] != &a.Body[0] {
		a.read.of = a.Body
		a.read.doc, a.read.err = strictjson.DecodeLenient(a.Body)
	}
	return a.read.doc, a.read.err
}

// UpstreamObject returns the body as a JSON object, or nil if the body is anything else or the response did not come from the platform.
func (a *Response) UpstreamObject() map[string]any {
	if !a.Relayed {
		return nil
	}
	return a.Object()
}

// Object returns the body as a JSON object, or nil if the body is anything else.
func (a *Response) Object() map[string]any {
	doc, err := a.document()
	object, ok := doc.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	return object
}

// WriteHeaders sets HeaderCost and HeaderBudget if the call was charged. r may be nil.
func (r *Reservation) WriteHeaders(h http.Header) {
	if r == nil || !r.Admitted || !r.Charged {
		return
	}
	if !r.Free {
		h.Set(HeaderCost, catalog.Money(cmp.Or(r.Current[ledger.Burn], r.Current[ledger.Cost])).String())
	}
	c := r.Quote.Tightest
	if c == nil {
		return
	}
	item := httpsfv.NewItem(c.Name())
	for _, p := range []struct {
		name string
		n    int64
	}{{"limit", c.Limit}, {"left", c.Remaining()}} {
		if ledger.IsMoney(c.Index) {
			item.Params.Add(p.name, float64(p.n)/1e6)
		} else {
			item.Params.Add(p.name, p.n)
		}
	}
	if c.Threshold > 0 {
		item.Params.Add("reached", c.Threshold)
	}
	if text, err := httpsfv.Marshal(item); err == nil { // cannot fail: an ASCII name and two numbers
		h.Set(HeaderBudget, text)
	}
}
