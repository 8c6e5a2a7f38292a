package filter

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// RewriteAddresses makes records of endpoints say where callers reach these: at the
// gateway. The platform's own addresses are of no use to them, since only the
// gateway has the platform's key. It stands before Relay on the way out, so that
// the legacy dialects see its result.
type RewriteAddresses struct {
	// Public is where callers reach the run interface, Balanced where they reach a
	// load-balanced endpoint, with {id} for its id; "" leaves records as they are.
	Public, Balanced string
}

// Name implements Filter.
func (RewriteAddresses) Name() string { return "addresses" }

// Request has answers with such records seen whole.
func (f RewriteAddresses) Request(_ context.Context, ex *Exchange) error {
	if row, _ := operation.Of(ex.Operation.ID); f.rewrites(row) {
		ex.Out.Buffered = true
	}
	return nil
}

// Response rewrites the records of a successful answer.
func (f RewriteAddresses) Response(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	a := ex.Response
	if !f.rewrites(row) || !a.Relayed || a.Status >= http.StatusMultipleChoices {
		return nil
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	if err != nil {
		return nil //nolint:nilerr // what is no JSON has no records; the caller sees it as it is
	}
	object, _ := doc.(map[string]any)
	f.rewrite(object)
	list, _ := object["endpoints"].([]any)
	for _, item := range list {
		record, _ := item.(map[string]any)
		f.rewrite(record)
	}
	if a.Body, err = strictjson.Append(nil, doc); err != nil {
		return err
	}
	a.Header.Del("Content-Length")
	return nil
}

// rewrites reports whether answers of an operation have records to rewrite.
func (f RewriteAddresses) rewrites(row operation.Row) bool {
	return row.Addresses && (f.Public != "" || f.Balanced != "")
}

// rewrite changes the addresses of one record: those of a queue, which have the
// endpoint's id in their paths, and those of a load balancer, which have it in the
// name of their host (reference platform-v2, section 6.2).
func (f RewriteAddresses) rewrite(record map[string]any) {
	id, _ := record["id"].(string)
	urls, _ := record["requestUrls"].(map[string]any)
	_, balanced := urls["base"]
	for name, v := range urls {
		given, _ := v.(string)
		u, err := url.Parse(strings.NewReplacer("{", "%7B", "}", "%7D").Replace(given))
		switch {
		case err != nil || id == "":
		case balanced && f.Balanced != "":
			urls[name] = strings.Replace(f.Balanced, "{id}", id, 1) + u.Path
		case f.Public != "" && strings.HasPrefix(u.Path, "/v2/"+id+"/"):
			urls[name] = f.Public + u.Path
		}
	}
}
