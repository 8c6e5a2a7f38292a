package telemetry

import (
	"fmt"
)

// Must returns v and panics if err is not nil. It is meant for the creation of instruments and the registration of callbacks, whose
// arguments are constants.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("metrics: %v", err))
	}
	return v
}
