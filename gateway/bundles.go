package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tollgate-dev/tollgate/policies"
)

// keepBundle gives a bundle that is persisted nowhere a place for as long as
// the gateway lives, so that a new configuration begins with the last good
// bundle and not with none. The place is that of the bundle's own section:
// another source, or another key, begins anew; how often it is looked at, and
// whether it may drop policies, does not matter.
func (g *Gateway) keepBundle(org string, b *policies.Bundle) (*policies.Bundle, error) {
	if b == nil || b.Persist != "" {
		return b, nil
	}
	if g.bundles == "" {
		dir, err := os.MkdirTemp("", "tollgate-bundles-")
		if err != nil {
			return nil, fmt.Errorf("a place for policy bundles: %w", err)
		}
		g.bundles = dir
	}
	source := *b
	source.Poll, source.Timeout, source.MayDrop = 0, 0, false
	section, err := json.Marshal(&source)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(org+"\x00"), section...))
	kept := *b
	kept.Persist = filepath.Join(g.bundles, hex.EncodeToString(sum[:16])+".tar.gz")
	return &kept, nil
}

// dropBundles removes what keepBundle kept.
func (g *Gateway) dropBundles() {
	if g.bundles != "" {
		_ = os.RemoveAll(g.bundles) // a temporary directory; the system has its own way with them
	}
}
