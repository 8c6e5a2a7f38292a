package policyconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Bundle configures an OPA bundle with an organisation's own Rego.
type Bundle struct {
	URL           egress.URL       `yaml:"url" doc:"https URL of the bundle, or http on a loopback address. Set either url or file"`
	File          files.Path       `yaml:"file" doc:"path of a bundle on disk, polled at the same interval"`
	Poll          time.Duration    `yaml:"poll" doc:"polling interval; default 1m. The interval varies randomly by 10 % and doubles after each failure, up to ten times this value"`
	Timeout       time.Duration    `yaml:"timeout" doc:"time limit for one download; default 30s"`
	TokenFile     files.Credential `yaml:"token_file" doc:"file with a bearer token for url, read at every poll"`
	Key           *BundleKey       `yaml:"key" doc:"key to verify the signature, required unless allow_unsigned is true"`
	AllowUnsigned bool             `yaml:"allow_unsigned" doc:"accept bundles without verifying signatures"`
	Persist       files.Target     `yaml:"persist" doc:"file that stores the last valid bundle for the next start"`
	MayDrop       bool             `yaml:"may_drop" doc:"accept a bundle that contains no policy, or that lacks (and so disables) a policy of the last valid bundle. Policies that entries or exceptions refer to must always be present"`
}

// BundleKey verifies bundle signatures.
type BundleKey struct {
	ID        string           `yaml:"id" doc:"ID of the key, which a signature can contain"`
	File      files.Credential `yaml:"file" doc:"file with the public key in PEM or the HMAC secret"`
	Algorithm string           `yaml:"algorithm" doc:"signature algorithm, such as ES256; default RS256"`
	Scope     string           `yaml:"scope" doc:"scope that the signature must contain"`
}

// PersistedIn returns a copy of the bundle of an organisation that persists in a file in dir. The name of the file depends on the
// organisation and on the source and key of the bundle, but not on the polling interval or on MayDrop.
func (b *Bundle) PersistedIn(dir, org string) (*Bundle, error) {
	source := *b
	source.Poll, source.Timeout, source.MayDrop = 0, 0, false
	section, err := json.Marshal(&source)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(org+"\x00"), section...))
	kept := *b
	kept.Persist = files.UnrestrictedTarget(filepath.Join(dir, hex.EncodeToString(sum[:16])+".tar.gz"))
	return &kept, nil
}
