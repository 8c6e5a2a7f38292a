package policyconfig

import (
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Bundle says where an organisation's own Rego comes from as an OPA bundle.
type Bundle struct {
	URL           egress.URL       `yaml:"url" doc:"where the bundle is polled: https, or http on a loopback address; one of url and file is required"`
	File          files.Path       `yaml:"file" doc:"a bundle on disk, looked at as often"`
	Poll          time.Duration    `yaml:"poll" doc:"the time between looks; a tenth more or less is added by chance, and failures double it up to ten times; 0 is 1m"`
	Timeout       time.Duration    `yaml:"timeout" doc:"bounds one download; 0 is 30s"`
	TokenFile     files.Credential `yaml:"token_file" doc:"holds a bearer token for url, read at every look"`
	Key           *BundleKey       `yaml:"key" doc:"verifies the bundle's signature. Required unless allow_unsigned"`
	AllowUnsigned bool             `yaml:"allow_unsigned" doc:"takes bundles without looking at signatures"`
	Persist       files.Target     `yaml:"persist" doc:"a file that keeps the last good bundle for the next start"`
	MayDrop       bool             `yaml:"may_drop" doc:"takes a bundle that holds no policy, or that lacks one the last good bundle had. Without it such a bundle is refused, since policies are switched on by being there. What an entry or an exception names must be there in any case"`
}

// BundleKey verifies the signatures of bundles.
type BundleKey struct {
	ID        string           `yaml:"id" doc:"the key's name; a signature may name it"`
	File      files.Credential `yaml:"file" doc:"holds the public key in PEM, or the secret of an HMAC"`
	Algorithm string           `yaml:"algorithm" doc:"the signature's algorithm, such as ES256; empty is RS256"`
	Scope     string           `yaml:"scope" doc:"must equal the signature's"`
}
