package operator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
)

// EngineFactory creates policy engines and holds the engine in force.
type EngineFactory struct {
	// Logger is the logger of the engines. Streams are rechecked when different policies take effect.
	Logger  *slog.Logger
	Streams *filter.Streams
	// Isolate compiles organisations' own Rego that has not been compiled before; see policies.Deps.
	Isolate *isolate.Runner
	// OnNewBundle is passed to [policies.Deps].
	OnNewBundle func(ctx context.Context) (replaced bool)

	// InForce is the engine of the configuration in force, or nil before the first configuration.
	InForce atomic.Pointer[policies.Engine]

	bundles string // directory of bundles without a configured file, or "" before the first
}

// patience limits how long a reload waits for child processes that compile an organisation's own Rego.
const patience = time.Second

// New returns the engine for a configuration. The engine starts with the bundles of the previous engine, which may be nil. New does not
// change InForce; the caller sets InForce once the whole configuration is in force. New must not be called concurrently.
func (e *EngineFactory) New(cfg *settings.Config, previous *policies.Engine) (*policies.Engine, error) {
	orgs := make(map[string]policies.Config, len(cfg.Orgs))
	for _, o := range cfg.Orgs {
		section := o.Policies
		var err error
		if section.Bundle, err = e.persistBundle(o.ID, section.Bundle); err != nil {
			return nil, err
		}
		orgs[o.ID] = section
	}
	deps := policies.Deps{Logger: e.Logger, OnChange: e.Streams.Recheck, OnNewBundle: e.OnNewBundle, Previous: previous, Isolate: e.Isolate}
	if previous != nil { // do not delay the organisations in force for slow Rego
		deps.CompileWait = patience
	}
	return policies.NewEngine(cfg.Policies, orgs, deps)
}

// persistBundle assigns a temporary file to a bundle that has no configured file, so that a new configuration starts with the last valid
// bundle.
func (e *EngineFactory) persistBundle(org string, b *policies.Bundle) (*policies.Bundle, error) {
	if b == nil || !b.Persist.IsZero() {
		return b, nil
	}
	if e.bundles == "" {
		dir, err := os.MkdirTemp("", "tollgate-bundles-")
		if err != nil {
			return nil, fmt.Errorf("directory for policy bundles: %w", err)
		}
		e.bundles = dir
	}
	return b.PersistedIn(e.bundles, org)
}

// Close removes the stored bundles.
func (e *EngineFactory) Close() {
	if e.bundles != "" {
		_ = os.RemoveAll(e.bundles) // a temporary directory, which the system cleans up
	}
}

// PolicyStatus is the status of an organisation's policies.
type PolicyStatus struct {
	Org string `json:"org"`
	// Revision identifies the policies in force. It is empty while the first bundle is pending.
	Revision string `json:"revision"`
	// Bundle is the revision in the bundle's manifest. Fetched is the time when the bundle was last confirmed to be current.
	Bundle  string `json:"bundle,omitempty"`
	Fetched string `json:"fetched,omitempty"`
	// Fault is the reason why the latest bundle was rejected; the last valid one stays in force.
	Fault string `json:"fault,omitempty"`
	// Unlisted lists parameters that name things missing from the platform's catalog.
	Unlisted []string `json:"unlisted,omitempty"`
}

// policies returns the status of the policies in force, one entry for each organisation.
func (f *Fleet) policies() (out []PolicyStatus) {
	for _, s := range f.Engines.InForce.Load().Status() {
		p := PolicyStatus{Org: s.Org, Revision: s.Revision, Bundle: s.Bundle}
		if !s.Fetched.IsZero() {
			p.Fetched = s.Fetched.UTC().Format(time.RFC3339)
		}
		if s.Err != nil {
			p.Fault = s.Err.Error()
		}
		if o := f.Org(s.Org); o != nil {
			p.Unlisted = unlisted(o, f.Prices.Last(s.Org))
		}
		out = append(out, p)
	}
	return out
}

// unlisted returns the names in an organisation's policies that are missing from the platform's catalog. list may be nil.
func unlisted(o *settings.Org, list *catalog.Snapshot) []string {
	if list == nil {
		return nil
	}
	var out []string
	for _, v := range compiler.Values(o.Policies.Policies) {
		if meant, lacks := list.Unlisted(v.Format, v.Text); lacks {
			line := fmt.Sprintf("%s: %q is not in the platform's catalog", v.Path, v.Text)
			if len(meant) > 0 {
				line += `, did you mean "` + strings.Join(meant, `" or "`) + `"?`
			}
			out = append(out, line)
		}
	}
	return out
}

// LogUnlisted logs the names in an organisation's policies, such as GPU types, that are missing from the price list. They are probably
// misspelled.
func (e *EngineFactory) LogUnlisted(o *settings.Org, list *catalog.Snapshot) {
	for _, line := range unlisted(o, list) {
		e.Logger.Warn("policy parameter contains a name that is not in the platform's catalog", "org", o.ID, "parameter", line)
	}
}
