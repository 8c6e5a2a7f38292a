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

// SanitizeResponse makes the platform's response safe for the caller. Only listed headers pass, and redirects are refused. Error bodies are
// rebuilt from their documented members, so that they cannot reveal other resources of the account or the platform key. Responses other
// than JSON are sandboxed in browsers.
type SanitizeResponse struct {
	Upstream *upstream.Client
	// Run is the client for the run interface, nil if it is not served.
	Run *upstream.Client
}

// Name implements Filter.
func (SanitizeResponse) Name() string { return "sanitize response" }

// Request implements Filter. It does nothing.
func (SanitizeResponse) Request(context.Context, *Exchange) error { return nil }

// relayed lists the platform's response headers that are forwarded to callers, in canonical form.
var relayed = []string{"Content-Type", "Content-Length", "Cache-Control", "X-Accel-Buffering"}

// Response rewrites a response of the platform.
func (f SanitizeResponse) Response(_ context.Context, ex *Exchange) error {
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
		return fmt.Errorf("%w: the platform returned status 401", upstream.ErrCredential)
	case a.Status < 200 || a.Status >= 300 && a.Status < 400 || a.Status > 599:
		return fmt.Errorf("%w: the platform returned status %d", upstream.ErrUnreachable, a.Status)
	}
	if coding := a.Header.Values("Content-Encoding"); len(coding) > 0 && !strings.EqualFold(coding[0], "identity") {
		// No coding was requested. The caller could not decode the body, because Content-Encoding is not forwarded.
		return fmt.Errorf("%w: the platform used a content coding that was not requested", upstream.ErrUnreachable)
	}
	if ex.Dialect.IsRun() && a.Status < 300 && a.Stream == nil && !isRunResponse(a, ex.Out.Stream) {
		return fmt.Errorf("%w: the platform returned status %d with a body that is not JSON", upstream.ErrUnreachable, a.Status)
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

// isRunResponse reports whether a successful response of the run interface has a valid form: JSON, events, or lines of JSON if the media
// type says so or the request asked for a stream. For a streaming response, only the headers are checked.
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

// Events reports whether the response is an event stream.
func (a *Response) Events() bool { return a.media() == "text/event-stream" }

// Lines reports whether each line of the response is a JSON document.
func (a *Response) Lines() bool {
	switch a.media() {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
		"application/jsonlines", "application/stream+json":
		return true
	}
	return false
}

// media returns the lower-case media type without parameters.
func (a *Response) media() string {
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// publiclyCacheable reports whether a Cache-Control header permits shared caches to store the response (RFC 9111, section 5.2.2). Responses
// are meant for one caller only.
func publiclyCacheable(cacheControl string) bool {
	for directive := range strings.SplitSeq(cacheControl, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if strings.EqualFold(name, "public") || strings.EqualFold(name, "s-maxage") {
			return true
		}
	}
	return false
}

// rewriteError returns a problem with the title, detail and errors of the platform's error.
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
	if err != nil { // cannot fail: a struct of strings and integers
		panic(err)
	}
	return b, p.Detail
}

func isDigits(s string) bool {
	return s != "" && len(s) <= 9 && strings.Trim(s, "0123456789") == ""
}
