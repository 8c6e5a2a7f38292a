package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/load"
)

// Engines makes engines.
type Engines struct {
	// Logger logs for the engines. Changed is called when other policies are in force.
	Logger  *slog.Logger
	Changed func()
	// Isolate compiles own Rego that is not known to compile; see policies.Deps.
	Isolate *isolate.Runner
	// Arriving is that of [policies.Deps].
	Arriving func(ctx context.Context) (replaced bool)

	// InForce is the engine of the configuration in force, nil before the first.
	InForce atomic.Pointer[policies.Engine]

	bundles string // directory of bundles that are persisted nowhere else, "" before the first
}

// patience is how long a reload waits for own Rego to compile in child processes.
const patience = time.Second

// New makes the engine of a configuration, which begins with the bundles of the one before, nil for none. It is not
// called by two at once.
func (e *Engines) New(cfg *settings.Config, before *policies.Engine) (*policies.Engine, error) {
	orgs := make(map[string]policies.Config, len(cfg.Orgs))
	for _, o := range cfg.Orgs {
		section := o.Policies
		var err error
		if section.Bundle, err = e.keepBundle(o.ID, section.Bundle); err != nil {
			return nil, err
		}
		orgs[o.ID] = section
	}
	deps := policies.Deps{Logger: e.Logger, Changed: e.Changed, Arriving: e.Arriving, Before: before, Isolate: e.Isolate}
	if before != nil { // the organisations in force do not wait for Rego that compiles slowly
		deps.Patience = patience
	}
	return policies.NewEngine(cfg.Policies, orgs, deps)
}

// keepBundle gives a bundle that is persisted nowhere a place for as long as
// the gateway lives, so that a new configuration begins with the last good
// bundle and not with none. The place is that of the bundle's own section:
// another source, or another key, begins anew; how often it is looked at, and
// whether it may drop policies, does not matter.
func (e *Engines) keepBundle(org string, b *policies.Bundle) (*policies.Bundle, error) {
	if b == nil || !b.Persist.IsZero() {
		return b, nil
	}
	if e.bundles == "" {
		dir, err := os.MkdirTemp("", "tollgate-bundles-")
		if err != nil {
			return nil, fmt.Errorf("a place for policy bundles: %w", err)
		}
		e.bundles = dir
	}
	source := *b
	source.Poll, source.Timeout, source.MayDrop = 0, 0, false
	section, err := json.Marshal(&source)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(org+"\x00"), section...))
	kept := *b
	kept.Persist = files.UnrestrictedTarget(filepath.Join(e.bundles, hex.EncodeToString(sum[:16])+".tar.gz"))
	return &kept, nil
}

// Close removes the kept bundles.
func (e *Engines) Close() {
	if e.bundles != "" {
		_ = os.RemoveAll(e.bundles) // a temporary directory; the system has its own way with them
	}
}

// PolicyStatus is how an organisation's policies are doing.
type PolicyStatus struct {
	Org string `json:"org"`
	// Revision names the policies in force; empty while a bundle is awaited.
	Revision string `json:"revision"`
	// Bundle is the revision its bundle gives itself, Fetched when it was last
	// seen to be current.
	Bundle  string `json:"bundle,omitempty"`
	Fetched string `json:"fetched,omitempty"`
	// Fault is why the latest bundle was not taken; the last good one decides.
	Fault string `json:"fault,omitempty"`
	// Unlisted are the parameters that name things missing from the platform's catalog.
	Unlisted []string `json:"unlisted,omitempty"`
}

// Status tells how the policies in force are doing.
func Status(engine *policies.Engine, org func(id string) *settings.Org, prices *catalog.Catalog) []PolicyStatus {
	list := engine.Status()
	out := make([]PolicyStatus, len(list))
	for i, s := range list {
		out[i] = PolicyStatus{Org: s.Org, Revision: s.Revision, Bundle: s.Bundle}
		if !s.Fetched.IsZero() {
			out[i].Fetched = s.Fetched.UTC().Format(time.RFC3339)
		}
		if s.Err != nil {
			out[i].Fault = s.Err.Error()
		}
		if o := org(s.Org); o != nil {
			out[i].Unlisted = unlisted(o, prices.Last(s.Org))
		}
	}
	return out
}

// unlisted tells which names in an organisation's policies a list of the platform's
// catalog, nil if none was read, does not have.
func unlisted(o *settings.Org, list *catalog.Snapshot) []string {
	if list == nil {
		return nil
	}
	var out []string
	for _, v := range load.Values(o.Policies.Policies) {
		if meant, lacks := list.Lacks(v.Format, v.Text); lacks {
			line := fmt.Sprintf("%s: %q is not in the platform's catalog", v.Path, v.Text)
			if len(meant) > 0 {
				line += `, did you mean "` + strings.Join(meant, `" or "`) + `"?`
			}
			out = append(out, line)
		}
	}
	return out
}

// TellUnlisted logs the names in an organisation's policies that a list does not have.
func (e *Engines) TellUnlisted(o *settings.Org, list *catalog.Snapshot) {
	for _, line := range unlisted(o, list) {
		e.Logger.Warn("a policy names what the platform does not have", "org", o.ID, "parameter", line)
	}
}
