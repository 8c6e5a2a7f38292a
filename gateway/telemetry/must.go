package telemetry

import (
	"fmt"
)

// Must returns an instrument or the registration of its callback. It panics on an
// error: what they are made of is constant.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("metrics: %v", err))
	}
	return v
}
