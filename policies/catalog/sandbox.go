package catalog

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// sandbox prices a sandbox. The platform's record of a running sandbox states its rate. Otherwise the configured highest rate is used,
// because the platform's catalog does not list rates of sandboxes.
func (s *Snapshot) sandbox(record map[string]any) Cost {
	compute, _ := record["compute"].(map[string]any)
	rate, err := moneyOf(compute["costPerHr"])
	if err == nil && rate > 0 {
		return Cost{Known: true, Hourly: rate, Basis: "the platform's rate"}
	}
	if s.rates.Sandbox == 0 {
		return unknown("catalog.sandbox_rate is not set, and the platform states the rate of a sandbox only once it runs")
	}
	return Cost{Known: true, Hourly: s.rates.Sandbox, Basis: fmt.Sprintf("at most, by catalog.sandbox_rate, for %s", SandboxLifetime(record))}
}

// SandboxEnded reports whether a resource is a sandbox that has ended. The platform continues to return the records of such sandboxes.
func SandboxEnded(kind operation.Kind, record map[string]any) bool {
	return kind == operation.KindSandbox && (record["state"] == "TERMINATED" || record["state"] == "FAILED")
}

// defaultLifetime is the lifetime of a sandbox in seconds if the request does not set one (reference platform-v2-growth, section
// 2.4).
const defaultLifetime = 3600

// SandboxLifetime returns the longest possible lifetime of a sandbox, counted from its creation.
func SandboxLifetime(record map[string]any) time.Duration {
	seconds, ok := countOr(record["maxLifetimeSeconds"], defaultLifetime)
	if !ok {
		seconds = defaultLifetime
	}
	return time.Duration(min(seconds, maxLifetime)) * time.Second
}

// maxLifetime is a number of seconds above any account's limit, so that products stay in range.
const maxLifetime = 366 * 24 * 3600

// TimeMember parses an RFC 3339 time in a platform record. It returns the zero time if the member is missing or malformed.
func TimeMember(object map[string]any, member string) time.Time {
	text, _ := object[member].(string)
	at, _ := time.Parse(time.RFC3339, text) // zero on error
	return at
}
