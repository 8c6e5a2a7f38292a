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

// Config is the configuration of a bundle, with methods that fetch and verify it.
type Config policyconfig.Bundle

// Validate checks b and joins the errors it finds, each with its path. A nil b is valid.
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
		errs.Add("key", "is required unless allow_unsigned is true")
	case b.Key != nil && b.AllowUnsigned:
		errs.Add("allow_unsigned", "cannot be combined with key")
	case b.Key != nil:
		errs.If(b.Key.File.IsZero(), "key.file", "is required")
		errs.If(b.Key.Algorithm != "" && !keys.IsSupportedAlgorithm(b.Key.Algorithm), "key.algorithm", "%q is not supported", b.Key.Algorithm)
	}
	return fault.At("bundle", errors.Join(errs...))
}

// Default values.
const (
	defaultPoll    = time.Minute
	defaultTimeout = 30 * time.Second
)

// verification loads the verification key. Without a key it returns a configuration that verifies nothing.
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
