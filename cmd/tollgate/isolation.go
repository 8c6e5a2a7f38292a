package main

import (
	"context"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate/jobs"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// isolation returns an Isolator, which runs Rego that may not terminate in child processes. The child processes end when ctx ends or stop
// is called.
func isolation(ctx context.Context) (r *policies.Isolator, stop func()) {
	r = jobs.New()
	detach := context.AfterFunc(ctx, r.Close)
	return r, func() {
		detach()
		r.Close()
	}
}

// compiles returns an error if the Rego of a directory does not compile within the limits on time and memory. The caller reports other
// faults.
func compiles(ctx context.Context, dir string) error {
	d, err := compiler.OpenDirectory("", files.UnrestrictedPath(dir))
	if err != nil || d == nil {
		return nil // the caller finds the same error
	}
	r, stop := isolation(ctx)
	defer stop()
	if err := r.Compile(ctx, "", &policies.Compilation{Rego: d.Rego()}); err != nil {
		return &policyconfig.Error{File: dir, Path: "rego", Message: err.Error(), Cause: err}
	}
	return nil
}
