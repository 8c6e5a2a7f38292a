package policyconfig

import (
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Bundle configures an OPA bundle with an organisation's own Rego.
type Bundle struct {
	URL           egress.URL       `yaml:"url" doc:"URL of the bundle, with https, or with http on a loopback address. One of url and file is required"`
	File          files.Path       `yaml:"file" doc:"path of a bundle on disk, which is polled at the same interval"`
	Poll          time.Duration    `yaml:"poll" doc:"polling interval; 0 means 1m. The actual interval varies randomly by 10 % and doubles after each failure, up to ten times this value"`
	Timeout       time.Duration    `yaml:"timeout" doc:"time limit for one download; 0 means 30s"`
	TokenFile     files.Credential `yaml:"token_file" doc:"file that contains a bearer token for url and is read at every poll"`
	Key           *BundleKey       `yaml:"key" doc:"key to verify the signature of the bundle, required unless allow_unsigned is true"`
	AllowUnsigned bool             `yaml:"allow_unsigned" doc:"accept bundles without verifying their signatures"`
	Persist       files.Target     `yaml:"persist" doc:"file that stores the last valid bundle for the next start"`
	MayDrop       bool             `yaml:"may_drop" doc:"accept a bundle that contains no policy or omits a policy of the last valid bundle. By default such a bundle is rejected, because the omission disables the policy. Policies named in an entry or an exception must always be present"`
}

// BundleKey verifies bundle signatures.
type BundleKey struct {
	ID        string           `yaml:"id" doc:"ID of the key, which a signature can name"`
	File      files.Credential `yaml:"file" doc:"file that contains the public key in PEM or the HMAC secret"`
	Algorithm string           `yaml:"algorithm" doc:"signature algorithm, such as ES256; empty means RS256"`
	Scope     string           `yaml:"scope" doc:"scope that the signature must contain"`
}
