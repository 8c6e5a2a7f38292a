package main

import (
	"context"
	"os"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/isolate/jobs"
)

// TestMain lets the test binary be the child of commands that compile Rego.
func TestMain(m *testing.M) {
	if code, isChild := jobs.Main(context.Background()); isChild {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
