package filter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// FilterResponse makes the platform's answer fit to be seen: only listed headers pass,
// redirects do not, and an error body is written anew from its documented
// members, so that nothing else the platform may say (its account's other
// resources, our credential) reaches the caller. Content that is not JSON is a
// document of no origin to browsers.
type FilterResponse struct {
	Upstream *upstream.Client
	// Run is where calls of the run interface go; nil when it is not served.
	Run *upstream.Client
}

// Name implements Filter.
func (FilterResponse) Name() string { return "relay" }

// Request implements Filter; there is nothing to do on the way in.
func (FilterResponse) Request(context.Context, *Exchange) error { return nil }

// relayed lists the platform's response headers that callers get to see, in
// canonical form.
var relayed = []string{"Content-Type", "Content-Length", "Cache-Control", "X-Accel-Buffering"}

// Response rewrites a relayed answer.
func (f FilterResponse) Response(_ context.Context, ex *Exchange) error {
	a := ex.Response
	if !a.Relayed {
		return nil
	}
	if ex.Opaque() {
		filterOpaqueResponse(a)
		return nil
	}
	switch {
	case a.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w: the platform answered 401", upstream.ErrCredential)
	case a.Status < 200 || a.Status >= 300 && a.Status < 400 || a.Status > 599:
		return fmt.Errorf("%w: the platform answered %d", upstream.ErrUnreachable, a.Status)
	}
	if coding := a.Header.Values("Content-Encoding"); len(coding) > 0 && !strings.EqualFold(coding[0], "identity") {
		// It was not asked for, nothing here reads it, and without the header,
		// which is not relayed, the caller could not either.
		return fmt.Errorf("%w: the platform answered in a content coding", upstream.ErrUnreachable)
	}
	if ex.Dialect.IsRun() && a.Status < 300 && a.Stream == nil && !isRunResponse(a, ex.Out.Stream) {
		return fmt.Errorf("%w: the platform answered %d with something else than JSON", upstream.ErrUnreachable, a.Status)
	}
	header := make(http.Header, 8)
	for _, name := range relayed {
		if v := a.Header[name]; len(v) == 1 && printable(v[0]) {
			header[name] = v
		}
	}
	if publiclyCacheable(header.Get("Cache-Control")) {
		header.Del("Cache-Control")
	}
	if a.Status < 400 {
		if a.Status != http.StatusNoContent && !isData(header.Get("Content-Type")) {
			header.Set("Content-Security-Policy", sandbox)
		}
		a.Header = header
		return nil
	}
	header.Del("Content-Length")
	if after := a.Header.Get("Retry-After"); isDigits(after) {
		header.Set("Retry-After", after)
	}
	if ex.Dialect.IsRun() {
		body, detail := runError(ex, f.Run.Credential(ex.Caller.Org))
		header.Set("Content-Type", problem.RunContentType)
		ex.Event.Detail, a.Header, a.Body = detail, header, body
		return nil
	}
	header.Set("Content-Type", problem.ContentType)
	body, detail := ex.rewriteError(f.Upstream.Credential(ex.Caller.Org))
	ex.Event.Detail, a.Header, a.Body = detail, header, body
	return nil
}

// isRunResponse reports whether a successful answer of the run interface has a form that its callers
// read: JSON, events, or lines of JSON, under their media type or in answer to a request for a
// stream. Of an answer that streams only the head is known.
func isRunResponse(a *Response, stream bool) bool {
	if a.Events() || json.Valid(a.Body) {
		return true
	}
	lines := bytes.TrimSpace(a.Body)
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !json.Valid(line) {
			return false
		}
	}
	return (stream || a.Lines()) && len(lines) > 0
}

// Events reports whether an answer is an event stream.
func (a *Response) Events() bool { return a.media() == "text/event-stream" }

// Lines reports whether each line of an answer is a JSON document.
func (a *Response) Lines() bool {
	switch a.media() {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/stream+json":
		return true
	}
	return false
}

// media returns the media type without parameters, in lower case.
func (a *Response) media() string {
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// publiclyCacheable reports whether a Cache-Control header lets caches between the gateway and
// its callers keep an answer (RFC 9111, section 5.2.2): it is for one caller.
func publiclyCacheable(cacheControl string) bool {
	for directive := range strings.SplitSeq(cacheControl, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if strings.EqualFold(name, "public") || strings.EqualFold(name, "s-maxage") {
			return true
		}
	}
	return false
}

// rewriteError keeps title, detail and errors of a platform error.
func (ex *Exchange) rewriteError(cred upstream.Credential) (body []byte, detail string) {
	a := ex.Response
	p := problem.Problem{Title: http.StatusText(a.Status), Status: a.Status}
	said := a.Object()
	p.Detail, _ = said["detail"].(string)
	if title, ok := said["title"].(string); ok && title != "" {
		p.Title = title
	}
	list, _ := said["errors"].([]any)
	for _, item := range list {
		if s, ok := item.(string); ok {
			p.Errors = append(p.Errors, s)
		}
	}
	p.Detail = cmp.Or(p.Detail, "the platform gave no reason")
	scrub := func(s string) string { return string(cred.Scrub([]byte(s))) }
	p.Title, p.Detail = scrub(p.Title), scrub(p.Detail)
	for i, e := range p.Errors {
		p.Errors[i] = scrub(e)
	}
	ex.secretError(&p)
	b, err := json.Marshal(&p)
	if err != nil { // a struct of strings and ints always encodes
		panic(err)
	}
	return b, p.Detail
}

func isDigits(s string) bool {
	return s != "" && len(s) <= 9 && strings.Trim(s, "0123456789") == ""
}
