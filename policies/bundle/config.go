package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"time"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/keys"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config says where an organisation's own Rego comes from as an OPA bundle.
type Config struct {
	URL           string        `yaml:"url" doc:"where the bundle is polled: https, or http on a loopback address; one of url and file is required"`
	File          string        `yaml:"file" doc:"a bundle on disk, looked at as often"`
	Poll          time.Duration `yaml:"poll" doc:"the time between looks; a tenth more or less is added by chance, and failures double it up to ten times; 0 is 1m"`
	Timeout       time.Duration `yaml:"timeout" doc:"bounds one download; 0 is 30s"`
	TokenFile     string        `yaml:"token_file" doc:"holds a bearer token for url, read at every look"`
	Key           *Key          `yaml:"key" doc:"verifies the bundle's signature. Required unless allow_unsigned"`
	AllowUnsigned bool          `yaml:"allow_unsigned" doc:"takes bundles without looking at signatures"`
	Persist       string        `yaml:"persist" doc:"a file that keeps the last good bundle for the next start"`
	MayDrop       bool          `yaml:"may_drop" doc:"takes a bundle that holds no policy, or that lacks one the last good bundle had. Without it such a bundle is refused, since policies are switched on by being there. What an entry or an exception names must be there in any case"`
}

// Key verifies signatures.
type Key struct {
	ID        string `yaml:"id" doc:"the key's name; a signature may name it"`
	File      string `yaml:"file" doc:"holds the public key in PEM, or the secret of an HMAC"`
	Algorithm string `yaml:"algorithm" doc:"the signature's algorithm, such as ES256; empty is RS256"`
	Scope     string `yaml:"scope" doc:"must equal the signature's"`
}

// Validate reports the faults of the section; nil has none.
func (b *Config) Validate() error {
	if b == nil {
		return nil
	}
	var errs fault.Found
	errs.If((b.URL == "") == (b.File == ""), "", "one of url and file is required")
	if b.URL != "" {
		u, err := url.Parse(b.URL)
		switch {
		case err != nil:
			errs.Add("url", "not a URL")
		case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil:
			errs.Add("url", "must be http or https with a host and without credentials")
		case u.Scheme == "http" && !loopback(u.Hostname()):
			errs.Add("url", "must be https: http is for loopback addresses only")
		}
	}
	errs.If(b.Poll < 0, "poll", "must not be negative, got %s", b.Poll)
	errs.If(b.Timeout < 0, "timeout", "must not be negative, got %s", b.Timeout)
	switch {
	case b.Key == nil && !b.AllowUnsigned:
		errs.Add("key", "is required, or allow_unsigned must say that signatures do not matter")
	case b.Key != nil && b.AllowUnsigned:
		errs.Add("allow_unsigned", "contradicts key")
	case b.Key != nil:
		errs.If(b.Key.File == "", "key.file", "is required")
		errs.If(b.Key.Algorithm != "" && !keys.IsSupportedAlgorithm(b.Key.Algorithm), "key.algorithm", "%q is not supported", b.Key.Algorithm)
	}
	return fault.At("bundle", errors.Join(errs...))
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// The defaults of a bundle section.
const (
	defaultPoll    = time.Minute
	defaultTimeout = 30 * time.Second
)

// verification loads the key. The keyless config verifies nothing.
func (b *Config) verification() (*opabundle.VerificationConfig, error) {
	if b.Key == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(b.Key.File)
	if err != nil {
		return nil, fmt.Errorf("bundle key: %w", err)
	}
	algorithm := cmp.Or(b.Key.Algorithm, "RS256")
	id := cmp.Or(b.Key.ID, "default")
	key := &opabundle.KeyConfig{Key: string(pem), Algorithm: algorithm, Scope: b.Key.Scope}
	return opabundle.NewVerificationConfig(map[string]*opabundle.KeyConfig{id: key}, id, b.Key.Scope, nil), nil
}
