package telemetry

import (
	"fmt"
)

// Must returns v, or panics if err is not nil. Use it to create instruments and to register callbacks with constant arguments.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("metrics: %v", err))
	}
	return v
}
