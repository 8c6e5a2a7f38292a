package filter

import (
	"net/http"
	"slices"
	"strings"
)

// sandbox is the Content-Security-Policy for responses with foreign content. Browsers give the document a unique origin, so its scripts
// cannot access the consoles or their sessions.
const sandbox = "sandbox"

// Response headers with effects beyond a single response. Browsers apply them to the origin, which load-balanced endpoints share with the
// consoles, or send requests because of them. Caches and proxies in front of the gateway also obey some of them. The list covers the Fetch,
// HTML, Service Workers, Reporting, Client Hints and Clear Site Data specifications, RFC 6797, 6265, 7469, 7838, 8288, 9110 and 9211, and
// the headers that control nginx, Apache and CDNs.
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
		// Requests that browsers send because of the response.
		"Refresh": true, "Link": true, "Speculation-Rules": true, "X-Dns-Prefetch-Control": true, "Nel": true, "Report-To": true,
		"Reporting-Endpoints": true, "Content-Security-Policy-Report-Only": true, "Sourcemap": true, "X-Sourcemap": true,
		// Access by pages of other origins; see also originPrefixes.
		"Timing-Allow-Origin": true, "Supports-Loading-Mode": true,
		// Instructions to a cache or proxy in front of the gateway.
		"Surrogate-Control": true, "X-Sendfile": true, "X-Lighttpd-Send-File": true, "X-Reproxy-Url": true,
	}
	originPrefixes = []string{
		"Access-Control-", "Sec-Session-", "Secure-Session-", "Attribution-Reporting-", "Ad-Auction-",
		"Shared-Storage-", "Observe-Browsing-", "X-Accel-",
	}
)

// confine removes headers with effects beyond the response, prevents shared caching, and sets the sandbox policy.
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

// isData reports whether browsers treat the content type as data (JSON or events), not as a document that may run scripts.
func isData(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "application/problem+json", "text/event-stream":
		return true
	}
	return false
}
