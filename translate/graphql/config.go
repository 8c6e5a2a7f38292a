package graphql

import (
	"time"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Config holds the settings of the GraphQL API. Start from DefaultConfig, because the zero value rejects every document.
type Config struct {
	// Introspection allows queries of __schema and __type.
	Introspection bool
	// CreateTimeout is the timeout of a request that creates a pod or a cluster, including its last placement attempt. Timeout is the timeout
	// of every other request.
	CreateTimeout, Timeout time.Duration
	// CreateBudget is the time after the arrival of a request that creates a pod or cluster. In this time the request may start another
	// placement attempt. CreateTimeout still applies.
	CreateBudget time.Duration
	// Limits holds the limits of one request.
	Limits Limits
	// Legacy holds the settings that both dialects share.
	Legacy legacy.Config
}

// Limits holds the limits of one request. A refusal names the limit that the request exceeds.
type Limits struct {
	// Limits are the limits of the document, its variables and the response.
	engine.Limits
	// RootMutations is the maximum number of root fields of a mutation. Independent of RootMutations, only one of the root fields may cause
	// cost.
	RootMutations int
	// Calls is the maximum number of v2 calls of a request.
	Calls int
}

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{
		Introspection: true,
		CreateBudget:  9 * time.Second,
		CreateTimeout: 25 * time.Second,
		Timeout:       9 * time.Second,
		Legacy:        legacy.DefaultConfig(),
		Limits: Limits{
			Limits: engine.Limits{
				Document: 102400, Tokens: 1000, Depth: 10, Fields: 1000, Aliases: 10, Directives: 10, Values: 10000, Response: 8 << 20,
			},
			RootMutations: 1, Calls: 64,
		},
	}
}
