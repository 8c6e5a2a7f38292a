package policyconfig

import (
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Bundle configures an OPA bundle with an organisation's own Rego.
type Bundle struct {
	URL           egress.URL       `yaml:"url" doc:"URL from which the bundle is polled: https, or http on a loopback address; one of url and file is required"`
	File          files.Path       `yaml:"file" doc:"path of a bundle on disk, polled at the same interval"`
	Poll          time.Duration    `yaml:"poll" doc:"polling interval. It varies randomly by 10 % and doubles after each failure, up to ten times its length; 0 means 1m"`
	Timeout       time.Duration    `yaml:"timeout" doc:"time limit of one download; 0 means 30s"`
	TokenFile     files.Credential `yaml:"token_file" doc:"file with a bearer token for url, read at every poll"`
	Key           *BundleKey       `yaml:"key" doc:"key that verifies the bundle's signature. Required unless allow_unsigned is set"`
	AllowUnsigned bool             `yaml:"allow_unsigned" doc:"accept bundles without verifying signatures"`
	Persist       files.Target     `yaml:"persist" doc:"file that stores the last valid bundle for the next start"`
	MayDrop       bool             `yaml:"may_drop" doc:"accept a bundle that contains no policy, or that lacks a policy of the last valid bundle. Otherwise such a bundle is rejected, because an organisation's own policies are in force whenever they are present. Policies named in an entry or an exception must always be present"`
}

// BundleKey verifies bundle signatures.
type BundleKey struct {
	ID        string           `yaml:"id" doc:"ID of the key, which signatures may contain"`
	File      files.Credential `yaml:"file" doc:"file with the public key in PEM, or the secret of an HMAC"`
	Algorithm string           `yaml:"algorithm" doc:"signature algorithm, such as ES256; empty means RS256"`
	Scope     string           `yaml:"scope" doc:"scope that the signature must have"`
}
