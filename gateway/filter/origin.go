package filter

import (
	"net/http"
	"slices"
	"strings"
)

// sandbox is the Content-Security-Policy of a response whose content is not the gateway's: a document of it has an origin of its own, so its
// scripts, if it could run any, reach neither the consoles nor their sessions.
const sandbox = "sandbox"

// Response headers that do more than describe one response. A browser applies them to the origin of the gateway, which the consoles share with
// load-balanced endpoints, or sends requests because of them; a cache or a proxy in front of the gateway obeys them. The list holds the
// response headers of the Fetch, HTML, Service Workers, Reporting, Client Hints and Clear Site Data specifications, of RFC 6797, 6265, 7469,
// 7838, 8288, 9110 and 9211, and those by which nginx, Apache and CDNs are controlled.
//
//nolint:gochecknoglobals // a constant, in all but the language's sense
var (
	originHeaders = map[string]bool{
		// State of the origin: cookies, storage, registrations, credentials, certificates, alternative servers.
		"Set-Cookie": true, "Set-Cookie2": true, "Clear-Site-Data": true, "Service-Worker-Allowed": true, "Set-Login": true,
		"Activate-Storage-Access": true, "Www-Authenticate": true, "Authentication-Info": true, "Strict-Transport-Security": true,
		"Public-Key-Pins": true, "Public-Key-Pins-Report-Only": true, "Expect-Ct": true, "Alt-Svc": true, "Alt-Used": true,
		"Origin-Agent-Cluster": true, "Accept-Ch": true, "Accept-Ch-Lifetime": true, "Critical-Ch": true, "Use-As-Dictionary": true,
		"X-Permitted-Cross-Domain-Policies": true, "Permissions-Policy": true, "Feature-Policy": true,
		// Requests that the browser makes because of the response.
		"Refresh": true, "Link": true, "Speculation-Rules": true, "X-Dns-Prefetch-Control": true, "Nel": true, "Report-To": true,
		"Reporting-Endpoints": true, "Content-Security-Policy-Report-Only": true, "Sourcemap": true, "X-Sourcemap": true,
		// Access by pages of other origins; see originPrefixes, too.
		"Timing-Allow-Origin": true, "Supports-Loading-Mode": true,
		// Orders to a cache or a proxy in front of the gateway.
		"Surrogate-Control": true, "X-Sendfile": true, "X-Lighttpd-Send-File": true, "X-Reproxy-Url": true,
	}
	originPrefixes = []string{"Access-Control-", "Sec-Session-", "Secure-Session-", "Attribution-Reporting-", "Ad-Auction-", "Shared-Storage-", "Observe-Browsing-", "X-Accel-"}
)

// confine removes the headers with an effect beyond a response, and makes its content a document of no origin. Caches that callers share do
// not keep it.
func confine(h http.Header) {
	for name := range h {
		reaches := originHeaders[name] || strings.HasSuffix(name, "-Cache-Control")
		for _, prefix := range originPrefixes {
			reaches = reaches || strings.HasPrefix(name, prefix)
		}
		if reaches && name != "X-Accel-Buffering" {
			delete(h, name)
		}
	}
	if slices.ContainsFunc(h["Cache-Control"], publiclyCacheable) {
		delete(h, "Cache-Control")
	}
	h["Content-Security-Policy"] = []string{sandbox}
}

// isData reports whether browsers show a response of a content type as data: JSON, or events. Any other may be a document that runs scripts.
func isData(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "application/problem+json", "text/event-stream":
		return true
	}
	return false
}
