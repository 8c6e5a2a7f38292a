package filter

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// BuildRequest builds the outbound request from the parsed values: path, query and body in canonical form, and a fixed list of headers. It
// copies no part of the caller's request unchanged, except for calls to load-balanced endpoints.
type BuildRequest struct {
	// Agent is the User-Agent sent to the platform.
	Agent string
}

// Name implements Filter.
func (BuildRequest) Name() string { return "build request" }

// Request sets ex.Out to the complete request without the platform credential, which is added when the request is sent. It returns 413 if a
// template or the policies have made the body too large for the platform.
func (f BuildRequest) Request(_ context.Context, ex *Exchange) error {
	op := ex.Operation
	out := &ex.Out
	if ex.Opaque() {
		return buildOpaqueRequest(ex)
	}
	out.Method = op.Method
	out.Path = expand(op.Path, ex.Params)
	out.Query = encodeQuery(ex.Query)
	if ex.Progress.page != nil {
		out.Query = ex.pageQuery(ex.Progress.page.at.Cursor)
	}
	row, _ := operation.Lookup(op.ID)
	// The gateway records a new resource from the record in the response.
	out.Buffered = out.Buffered || row.Kind != operation.KindCluster && row.Price != operation.PriceFree &&
		(row.Verb == operation.VerbCreate || row.Verb == operation.VerbUpdate)
	out.Buffered = out.Buffered || row.Kind == operation.KindSandbox && row.Verb == operation.VerbRead // the record contains the rate and the end time
	out.Buffered = out.Buffered || row.ResourceList() != ""                                            // all pages are joined before the first byte is sent
	out.Stream = op.Streams && (!op.HasBody || asksToStream(ex.Body.Doc))
	out.Header = http.Header{
		"Accept":          {"application/json, application/problem+json"},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {f.Agent},
		HeaderRequestID:   {ex.RequestID},
	}
	if out.Stream {
		out.Header["Accept"] = []string{"text/event-stream, application/problem+json"}
		if last := ex.In.Header.Get("Last-Event-ID"); last != "" && len(last) <= 128 {
			out.Header["Last-Event-Id"] = []string{last}
		}
	}
	if !ex.Body.HasDoc {
		out.Body = nil
		return nil
	}
	out.Header["Content-Type"] = []string{"application/json"}
	ex.Body.Doc = ex.addLabels(row, ex.Body.Doc)
	if name := ex.listMember(); name != "" {
		body, _ := ex.Body.Doc.(map[string]any)
		ex.Body.Doc = body[name]
	}
	if ex.Admission.memory != nil && len(ex.In.Body) >= largeBody {
		free := ex.Admission.memory.releaseAll
		if ex.Body.beforeExtension != nil {
			free = func() {} // released with the response: the document may be sent again until then
		}
		var err error
		if out.Source, out.Length, err = newCanonical(ex.Body.Doc, free); err != nil {
			return fmt.Errorf("encode the outbound body: %w", err)
		}
		ex.dropBody()
		return nil
	}
	if body, isObject := ex.Body.Doc.(map[string]any); isObject && ex.Body.Unknown != nil {
		whole := maps.Clone(body)
		maps.Copy(whole, ex.Body.Unknown)
		ex.Body.Doc = whole
	}
	body, err := ex.Encode()
	if err != nil {
		return fmt.Errorf("encode the outbound body: %w", err)
	}
	if int64(len(body)) > ex.BodyLimit() { // because of the template, or of settings added by a policy
		return problem.TooLarge.Newf("the outbound body exceeds %d bytes after adding the template and policy changes", ex.BodyLimit())
	}
	out.Body = body
	return nil
}

// Encode returns the canonical form of the body.
func (ex *Exchange) Encode() ([]byte, error) {
	return strictjson.Append(make([]byte, 0, len(ex.In.Body)), ex.Body.Doc)
}

// asksToStream reports whether a body requests a streaming response.
func asksToStream(doc any) bool {
	body, _ := doc.(map[string]any)
	return body["stream"] == true
}

// expand replaces the {name} segments of a pattern with percent-encoded values.
func expand(pattern string, params map[string]string) string {
	if len(params) == 0 {
		return pattern
	}
	var b strings.Builder
	b.Grow(len(pattern) + len(params)*16) // most values are the platform's IDs
	for {
		before, rest, ok := strings.Cut(pattern, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		b.WriteString(url.PathEscape(params[name]))
		pattern = after
	}
}

// encodeQuery encodes parameters sorted by name. Commas are not escaped, because they separate the items of the platform's list parameters.
func encodeQuery(q url.Values) string {
	if len(q) == 0 {
		return ""
	}
	names := make([]string, 0, len(q))
	for name := range q {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		for _, value := range q[name] {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			b.WriteString(url.QueryEscape(name))
			b.WriteByte('=')
			b.WriteString(strings.ReplaceAll(url.QueryEscape(value), "%2C", ","))
		}
	}
	return b.String()
}
