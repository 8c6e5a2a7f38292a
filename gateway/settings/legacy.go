package settings

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Legacy configures the retired interfaces.
type Legacy struct {
	Answers AnswerMode `yaml:"answers" doc:"faithful reproduces actual behaviour, which clients expect; strict follows the API descriptions. See docs/v1.md"`
	Brand   string     `yaml:"brand" doc:"platform name for <Brand> (letters and digits) in the parameter include<Brand>Templates and the template field is<Brand>. If empty, the gateway uses the name in the domain of platform.base_url (Acme for rest.acme.io) and the names that callers use. If none is known, the field is isPlatform"`

	Deprecated string `yaml:"deprecated" doc:"deprecation date as YYYY-MM-DD for the Deprecation header (RFC 9745)"`

	Sunset string `yaml:"sunset" doc:"earliest end date as YYYY-MM-DD for the Sunset header (RFC 8594), not before deprecated; empty omits the header"`
	// Host is the host of the platform's address.
	Host string `yaml:"-"`

	Keyless Keyless `yaml:"keyless" doc:"GraphQL catalog requests without a key, as sent by price collectors"`
}

// V1 configures the v1 interface.
type V1 struct {
	Budget       time.Duration `yaml:"budget" doc:"maximum duration of a request, from 1s to 29s (clients give up after 30 s)"`
	VolumeBudget time.Duration `yaml:"volume_budget" doc:"maximum duration of a request for network volumes, from 1s to budget (clients give up after 10 s)"`
}

// GraphQL configures the GraphQL interface.
type GraphQL struct {
	Introspection bool          `yaml:"introspection" doc:"allow the fields __schema and __type. Otherwise, such queries are refused with 'GraphQL introspection is not allowed'"`
	CreateTimeout time.Duration `yaml:"create_timeout" doc:"time limit for creating a pod or a cluster, including all attempts"`
	Timeout       time.Duration `yaml:"timeout" doc:"time limit for all other requests"`
}

// AnswerMode selects the behaviour of the gateway where the legacy APIs deviated from their documentation: the actual behaviour of these
// APIs, or the documented behaviour.
type AnswerMode string

// Values implements strictyaml.Enum.
func (AnswerMode) Values() []string { return []string{"faithful", "strict"} }

// UnnamedPlatform is the warning that the platform's name is unknown. The name is needed only for callers of the retired interfaces.
const UnnamedPlatform = "brand is not set, and platform.base_url does not contain the name of the platform; set legacy.brand, because strict clients of the retired interfaces expect is<Brand> in templates"

// Keyless configures the requests to which the gateway responds without a key.
type Keyless struct {
	Org string `yaml:"org" doc:"organisation whose platform key is used; empty refuses requests without a key"`

	Limit ratelimit.AddressConfig `yaml:"limit" doc:"rate limit of each address. Only answered requests count" reload:"restart"`
}

// WithoutLegacy returns a fault for each setting of the retired interfaces in the file. Use it in a gateway that is built without these
// interfaces.
func (c *Config) WithoutLegacy() error {
	var errs fault.Found
	for _, path := range c.LegacySettings {
		errs.Add(path, "must be removed: only the legacy APIs (v1 and GraphQL) use this setting, and tollgate was built without them")
	}
	return errors.Join(errs...)
}

var brandPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)

// Validate returns all faults, each with its path relative to the section.
func (l *Legacy) Validate() error {
	var errs fault.Found
	errs.If(l.Brand != "" && !brandPattern.MatchString(l.Brand), "brand",
		"must be a letter followed by at most 31 letters and digits, got %q", l.Brand)
	deprecated, err := time.Parse(time.DateOnly, l.Deprecated)
	errs.If(err != nil, "deprecated", "must be a date such as 2026-11-15, got %q", l.Deprecated)
	if l.Sunset == "" {
		return errors.Join(errs...)
	}
	sunset, err := time.Parse(time.DateOnly, l.Sunset)
	switch {
	case err != nil:
		errs.Add("sunset", "must be a date such as 2026-11-15, got %q", l.Sunset)
	case sunset.Before(deprecated):
		errs.Add("sunset", "must not be before deprecated (%s), got %s", l.Deprecated, l.Sunset)
	}
	return errors.Join(errs...)
}

// Validate returns all faults, each with its path relative to the section.
func (c V1) Validate() error {
	var errs fault.Found
	errs.If(c.Budget < time.Second || c.Budget > 29*time.Second, "budget", "must be between 1s and 29s, got %v", c.Budget)
	errs.If(c.VolumeBudget < time.Second || c.VolumeBudget > c.Budget, "volume_budget", "must be between 1s and budget (%v), got %v",
		c.Budget, c.VolumeBudget)
	return errors.Join(errs...)
}

// Validate returns all faults, each with its path relative to the section.
func (c GraphQL) Validate() error {
	var errs fault.Found
	errs.If(c.CreateTimeout <= 0, "create_timeout", "must be greater than 0, got %v", c.CreateTimeout)
	errs.If(c.Timeout <= 0, "timeout", "must be greater than 0, got %v", c.Timeout)
	return errors.Join(errs...)
}

// KnownName returns the platform's name for use in identifiers: the configured name, or the result of [Legacy.DerivedName] if no name is
// configured.
func (l *Legacy) KnownName() string { return cmp.Or(l.Brand, l.DerivedName()) }

// DerivedName derives the platform's name from the registered domain of its address. The name consists of letters and digits, for example
// AcmeCloud for api.acme-cloud.co.uk. DerivedName returns "" for IP addresses and for domains that are not under a suffix in the public
// suffix list, such as host names in a private network.
func (l *Legacy) DerivedName() string {
	host := strings.ToLower(l.Host)
	suffix, icann := publicsuffix.PublicSuffix(host)
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil || !icann && !strings.Contains(suffix, ".") {
		return ""
	}
	var brand strings.Builder
	for word := range strings.SplitSeq(strings.TrimSuffix(domain, "."+suffix), "-") {
		if word != "" {
			brand.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	name := brand.String()
	if !brandPattern.MatchString(name) {
		return ""
	}
	return name
}
