package v1

import (
	"time"

	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Config holds the settings of the v1 API. Start from DefaultConfig, because the zero value ends every request at once.
type Config struct {
	// Budget is the maximum duration of a request; clients of v1 give up after 30 s. VolumeBudget is the maximum duration of a request for
	// network volumes; its clients give up after 10 s.
	Budget, VolumeBudget time.Duration
	// Legacy holds the settings that both dialects share.
	Legacy legacy.Config
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{Budget: 25 * time.Second, VolumeBudget: 9 * time.Second, Legacy: legacy.DefaultConfig()}
}
