package policies

import (
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// Compilation is own Rego that a child process compiles before this process does. Data is left
// out, since it decides nothing about how long the compilation takes.
type Compilation struct {
	Entries []Entry
	// Rego is the text by file, tests included.
	Rego map[string]string
}

// Run compiles the Rego, and drops its faults.
func (c *Compilation) Run(ctx context.Context) {
	own, err := compiler.Parse("", "", c.Rego, nil)
	if err != nil {
		return
	}
	_, _ = compiler.Compile(ctx, &compiler.Options{Entries: c.Entries, Rego: own}) // the parent finds the faults
}

// Source is all that an organisation's policies are made from, as data: a child process makes
// them again from it.
type Source struct {
	Org, DocURL string
	Entries     []Entry
	Exceptions  []Exception
	// Rego is the organisation's own by file, Data is the data beside it, and Digest names both.
	Rego   map[string]string
	Data   map[string]any
	Digest string
}

// Source returns the sources in force of an organisation.
func (e *Engine) Source(org string) (*Source, error) {
	now, known := e.now.Load().orgs[org]
	if !known {
		return nil, fmt.Errorf("%w: %s", ErrUnknownOrg, org)
	}
	if now == nil {
		return nil, fmt.Errorf("%w: %s", ErrBundlePending, org)
	}
	e.mu.Lock()
	cfg := e.configs[org]
	e.mu.Unlock()
	return &Source{
		Org: org, DocURL: e.deps.DocURL, Entries: slices.Clone(cfg.Policies), Exceptions: cfg.Exceptions,
		Rego: now.own.Sources(), Data: now.own.Data(), Digest: now.own.Digest(),
	}, nil
}
