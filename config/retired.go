package config

import (
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// constant is the hint for former settings that are now constants.
const constant = "no longer configurable; delete this setting"

// retired maps the paths of removed settings to hints. In a path, [] stands for every index of a list.
func retired() map[string]string {
	return map[string]string{
		"admin.issuers[].refresh":          constant,
		"admin.issuers[].skew":             constant,
		"catalog.max_age":                  constant,
		"catalog.refresh":                  constant,
		"catalog.retry":                    constant,
		"catalog.timeout":                  constant,
		"decisions.buffer":                 constant,
		"decisions.buffer_bytes":           constant,
		"decisions.service.batch":          constant,
		"decisions.service.delay":          constant,
		"decisions.service.timeout":        constant,
		"envoy.ratelimit":                  "the rate limit service was removed, and only calls through the gateway are counted; delete this setting",
		"graphql.create_budget":            constant,
		"graphql.limits":                   constant,
		"issuers[].refresh":                constant,
		"issuers[].skew":                   constant,
		"legacy.keyless.limit.addresses":   constant,
		"legacy.keyless.limit.ipv6_prefix": constant,
		"limits.anonymous.addresses":       constant,
		"limits.anonymous.ipv6_prefix":     constant,
		"limits.breaker":                   constant,
		"limits.commit":                    constant,
		"limits.fair_share.active":         constant,
		"limits.fair_share.threshold":      constant,
		"limits.gateway":                   "renamed to instance, at the top level of the file",
		"limits.lease.idle":                constant,
		"limits.lease.margin":              constant,
		"limits.lease.max":                 constant,
		"limits.lease.share":               constant,
		"limits.memory":                    constant,
		"overload.wait":                    constant,
		"overload.waiting":                 constant,
		"platform.transport":               "replaced by platform.connections, which limits the connections to the platform; delete this setting",
		"policies.concurrency":             constant,
		"policies.max_mutations":           constant,
	}
}

// place matches the index of a list entry in a path.
var place = regexp.MustCompile(`\[\d+\]`)

// hint improves the hints of unknown keys. A removed setting gets the hint in retired. If other sections have a setting with the same name,
// the hint lists their paths.
func hint(form strictyaml.Errors) {
	hints := retired()
	for i := range form {
		path := place.ReplaceAllString(form[i].Path, "[]")
		if text, ok := hints[path]; ok {
			form[i].Hint = text
			continue
		}
		unknown := form[i].Message == "unknown key" && !strings.HasPrefix(form[i].Hint, "did you mean")
		if places := elsewhere(path); len(places) > 0 && (unknown || path == "policies" && strings.HasSuffix(form[i].Message, "found a list")) {
			form[i].Hint = "move the key to " + strings.Join(places, " or ")
		}
	}
}

// elsewhere returns the paths of at most three settings that have the name of an unknown key but are in other sections. Settings of
// organisations come first.
func elsewhere(path string) []string {
	const most = 3
	name := path[strings.LastIndexByte(path, '.')+1:]
	var places []string
	for _, known := range strictyaml.Paths(settings.Default()) {
		switch {
		case known == path || !strings.HasSuffix(known, "."+name):
		case known == "orgs[]."+name:
			return []string{known}
		default:
			places = append(places, known)
		}
	}
	if len(places) > most {
		return nil
	}
	return places
}
