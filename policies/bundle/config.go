package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
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

	defaultAlgorithm = "RS256"
)

// checkKey returns an error if the verification key is not a key for its algorithm. It ignores a file that cannot be read, because some
// commands read a configuration on a machine without the gateway's files.
func (b *Config) checkKey(org string) error {
	if b.Key == nil {
		return nil
	}
	text, err := b.Key.File.Read(files.MaxToken)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	algorithm := cmp.Or(b.Key.Algorithm, defaultAlgorithm)
	want, hmac := jwa.RSA(), strings.HasPrefix(algorithm, "HS")
	if strings.HasPrefix(algorithm, "ES") {
		want = jwa.EC()
	}
	key, err := jwk.ParseKey(text, jwk.WithPEM(true))
	if hmac && len(text) > 0 || !hmac && err == nil && key.KeyType() == want {
		return nil
	}
	what := want.String() + " public key in PEM"
	if hmac {
		what = "secret"
	}
	return &policyconfig.Error{
		Org: org, Path: "bundle.key.file",
		Message: fmt.Sprintf("%s contains no %s, which the algorithm %s requires", b.Key.File, what, algorithm),
	}
}

// verification loads the verification key. Without a key it returns a configuration that verifies nothing.
func (b *Config) verification() (*opabundle.VerificationConfig, error) {
	if b.Key == nil {
		return nil, nil
	}
	pem, err := b.Key.File.Read(files.MaxToken)
	if err != nil {
		return nil, fmt.Errorf("bundle key: %w", err)
	}
	algorithm := cmp.Or(b.Key.Algorithm, defaultAlgorithm)
	id := cmp.Or(b.Key.ID, "default")
	key := &opabundle.KeyConfig{Key: string(pem), Algorithm: algorithm, Scope: b.Key.Scope}
	return opabundle.NewVerificationConfig(map[string]*opabundle.KeyConfig{id: key}, id, b.Key.Scope, nil), nil
}
