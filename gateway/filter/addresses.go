package filter

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// RewriteAddresses replaces the platform's endpoint URLs in responses with URLs of the gateway. Callers cannot use the platform's URLs,
// which require the platform key. The URLs are replaced before a response is translated to a legacy dialect.
type RewriteAddresses struct {
	// Public is the base URL of the run interface. Balanced is the base URL of a load-balanced endpoint, with {id} for the endpoint's ID.
	// An empty string leaves the corresponding URLs unchanged.
	Public, Balanced string
}

// Name implements Filter.
func (RewriteAddresses) Name() string { return "rewrite addresses" }

// Request sets ex.Out.Buffered for operations whose responses contain endpoint URLs.
func (f RewriteAddresses) Request(_ context.Context, ex *Exchange) error {
	if row, _ := operation.Lookup(ex.Operation.ID); f.rewrites(row) {
		ex.Out.Buffered = true
	}
	return nil
}

// Response rewrites the URLs in the endpoint records of a successful response.
func (f RewriteAddresses) Response(_ context.Context, ex *Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	a := ex.Response
	if !f.rewrites(row) || !a.Relayed || a.Status >= http.StatusMultipleChoices {
		return nil
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	if err != nil {
		return nil //nolint:nilerr // not JSON: no URLs to rewrite
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

// rewrites reports whether f rewrites URLs in the responses of an operation.
func (f RewriteAddresses) rewrites(row operation.Spec) bool {
	return row.ReturnsAddresses && (f.Public != "" || f.Balanced != "")
}

// rewrite replaces the URLs of one endpoint record. Queue URLs contain the endpoint's ID in the path; URLs of load balancers contain the ID
// in the host name (reference platform-v2, section 6.2).
func (f RewriteAddresses) rewrite(record map[string]any) {
	id, _ := record["id"].(string)
	urls, _ := record["requestUrls"].(map[string]any)
	_, balanced := urls["base"]
	for name, v := range urls {
		given, _ := v.(string)
		u, err := url.Parse(strings.ReplaceAll(strings.ReplaceAll(given, "{", "%7B"), "}", "%7D"))
		switch {
		case err != nil || id == "":
		case balanced && f.Balanced != "":
			urls[name] = strings.Replace(f.Balanced, "{id}", id, 1) + u.Path
		case f.Public != "" && strings.HasPrefix(u.Path, "/v2/"+id+"/"):
			urls[name] = f.Public + u.Path
		}
	}
}
