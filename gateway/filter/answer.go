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

// Headers that tell a caller the cost of its call, in USD per hour, or of a run in USD, and
// how full the tightest of its budgets is then (an RFC 9651 item).
const (
	HeaderCost   = "X-Tollgate-Cost"
	HeaderBudget = "X-Tollgate-Budget"
)

// Response is the response: a refusal, a local or translated answer, or the
// platform's.
type Response struct {
	Status int
	Header http.Header
	// Body is the whole body; Stream, when not nil, is sent instead.
	Body   []byte
	Stream io.ReadCloser
	// Tunnel is the connection to the worker that the answer has opened a WebSocket
	// to; nil otherwise. The door closes it.
	Tunnel io.ReadWriteCloser
	// Relayed marks an answer of the platform.
	Relayed bool
	// RecordFailure marks an answer that reports an error, under any status.
	Failed bool

	// read is the result of document for the bytes of.
	read struct {
		of  []byte
		doc any
		err error
	}
}

// document returns the body as decoded JSON. Several stages look at it; it is
// decoded once for all of them, so none may change it.
func (a *Response) document() (any, error) {
	if of := a.read.of; len(of) == 0 || len(of) != len(a.Body) || &of[0] != &a.Body[0] {
		a.read.of = a.Body
		a.read.doc, a.read.err = strictjson.DecodeLenient(a.Body)
	}
	return a.read.doc, a.read.err
}

// UpstreamObjectot is the object in the platform's answer, nil if there is none.
func (a *Response) UpstreamObject() map[string]any {
	if !a.Relayed {
		return nil
	}
	return a.Object()
}

// Object returns the body as a JSON object, nil for anything else.
func (a *Response) Object() map[string]any {
	doc, err := a.document()
	object, ok := doc.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	return object
}

// WriteHeaders writes cost and budget of a call that has taken something; r may be nil.
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
	if text, err := httpsfv.Marshal(item); err == nil { // a name in ASCII and two numbers
		h.Set(HeaderBudget, text)
	}
}
