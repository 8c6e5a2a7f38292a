package telemetry

import (
	"fmt"
)

// Must returns an instrument or the registration of its callback. It panics on an
// error: its arguments come from constants.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("metrics: %v", err))
	}
	return v
}
