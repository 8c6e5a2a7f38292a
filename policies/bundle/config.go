package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/keys"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Config is the bundle section, which knows how it is fetched and verified.
type Config policyconfig.Bundle

// Validate reports the faults of the section; nil has none.
func Validate(b *policyconfig.Bundle) error {
	if b == nil {
		return nil
	}
	var errs fault.Found
	errs.If(b.URL.IsZero() == b.File.IsZero(), "", "one of url and file is required")
	if !b.URL.IsZero() {
		errs = append(errs, fault.At("url", b.URL.Validate()))
	}
	errs.If(b.Poll < 0, "poll", "must not be negative, got %s", b.Poll)
	errs.If(b.Timeout < 0, "timeout", "must not be negative, got %s", b.Timeout)
	switch {
	case b.Key == nil && !b.AllowUnsigned:
		errs.Add("key", "is required, or allow_unsigned must say that signatures do not matter")
	case b.Key != nil && b.AllowUnsigned:
		errs.Add("allow_unsigned", "contradicts key")
	case b.Key != nil:
		errs.If(b.Key.File.IsZero(), "key.file", "is required")
		errs.If(b.Key.Algorithm != "" && !keys.IsSupportedAlgorithm(b.Key.Algorithm), "key.algorithm", "%q is not supported", b.Key.Algorithm)
	}
	return fault.At("bundle", errors.Join(errs...))
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
	pem, err := b.Key.File.Read(files.MaxToken)
	if err != nil {
		return nil, fmt.Errorf("bundle key: %w", err)
	}
	algorithm := cmp.Or(b.Key.Algorithm, "RS256")
	id := cmp.Or(b.Key.ID, "default")
	key := &opabundle.KeyConfig{Key: string(pem), Algorithm: algorithm, Scope: b.Key.Scope}
	return opabundle.NewVerificationConfig(map[string]*opabundle.KeyConfig{id: key}, id, b.Key.Scope, nil), nil
}
