package catalog

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// sandbox prices a sandbox: at the rate of the platform's record, which has one while the sandbox runs, otherwise at the configured
// ceiling. The platform's catalog has no rate of sandboxes.
func (s *Snapshot) sandbox(record map[string]any) Cost {
	compute, _ := record["compute"].(map[string]any)
	rate, err := moneyOf(compute["costPerHr"])
	if err == nil && rate > 0 {
		return Cost{Known: true, Hourly: rate, Basis: "the platform's rate"}
	}
	if s.rates.Sandbox == 0 {
		return unknown("catalog.sandbox_rate is not set, and the platform does not state the rate of a sandbox before it runs")
	}
	return Cost{Known: true, Hourly: s.rates.Sandbox, Basis: fmt.Sprintf("at most, by catalog.sandbox_rate, for %s", SandboxLifetime(record))}
}

// SandboxEnded reports whether a resource is a sandbox that has ended. Its record stays readable.
func SandboxEnded(kind operation.Kind, record map[string]any) bool {
	return kind == operation.KindSandbox && (record["state"] == "TERMINATED" || record["state"] == "FAILED")
}

// defaultLifetime is the lifetime of a sandbox that asks for none (reference platform-v2-growth, section 2.4).
const defaultLifetime = 3600

// SandboxLifetime returns the longest life of a sandbox, from its creation on.
func SandboxLifetime(record map[string]any) time.Duration {
	seconds, ok := countOr(record["maxLifetimeSeconds"], defaultLifetime)
	if !ok {
		seconds = defaultLifetime
	}
	return time.Duration(min(seconds, maxLifetime)) * time.Second
}

// maxLifetime is more seconds than any account allows; it keeps products in range.
const maxLifetime = 366 * 24 * 3600

// TimeMember is a time in an object of the platform, zero if the object does not say.
func TimeMember(object map[string]any, member string) time.Time {
	text, _ := object[member].(string)
	at, _ := time.Parse(time.RFC3339, text) // zero with an error
	return at
}
