package policies

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// Compilation asks a child process to compile an organisation's own Rego, which can take unlimited time or memory. It does not contain the
// data, because data does not affect the compile time.
type Compilation struct {
	Entries []Entry
	// Rego maps file names to contents, including tests.
	Rego map[string]string
}

// Run compiles the Rego to find out whether the compilation ends. It discards the errors of the compiler, because the parent process
// compiles the same Rego afterwards and reports them.
func (c *Compilation) Run(ctx context.Context) {
	own, err := compiler.Parse("", "", c.Rego, nil)
	if err != nil {
		return
	}
	_, _ = compiler.Compile(ctx, &compiler.Options{Entries: c.Entries, Rego: own}) // the parent reports the errors
}

// Source is the serializable form of everything an organisation's policies are compiled from. A child process uses it to compile
// the same policies.
type Source struct {
	Org        string
	Entries    []Entry
	Exceptions []Exception
	// Rego maps the names of the organisation's own files to their contents. Data is the data document of that Rego. Digest identifies Rego
	// and Data.
	Rego   map[string]string
	Data   map[string]any
	Digest string
}

// Source returns the sources of the organisation's policies in force.
func (e *Engine) Source(org string) (*Source, error) {
	o, err := e.state(org)
	if err != nil {
		return nil, err
	}
	cfg := e.configs[org]
	return &Source{
		Org: org, Entries: slices.Clone(cfg.Policies), Exceptions: cfg.Exceptions,
		Rego: o.own.Sources(), Data: o.own.Data(), Digest: o.own.Digest(),
	}, nil
}
