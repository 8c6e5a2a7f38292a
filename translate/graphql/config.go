package graphql

import (
	"time"

	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Config holds the settings of the GraphQL interface. Use DefaultConfig as a base, because the zero value rejects every
// document.
type Config struct {
	// Introspection allows __schema and __type.
	Introspection bool
	// CreateTimeout is the timeout of a request that creates a pod or a cluster, including the current attempt. Timeout is
	// the timeout of every other request.
	CreateTimeout, Timeout time.Duration
	// CreateBudget is the time after the arrival of a request during which a create of a pod or cluster may start another
	// placement attempt. CreateTimeout still applies.
	CreateBudget time.Duration
	// Limits holds the limits of one request.
	Limits Limits
	// Legacy holds the settings that both dialects share.
	Legacy legacy.Config
}

// Limits holds the limits of one request. Each refusal names the limit that was exceeded. Fields are counted after the
// expansion of fragments.
type Limits struct {
	// Document is the maximum length of the query document in bytes, and Tokens the maximum number of lexical tokens in
	// it, including comments.
	Document, Tokens int
	// Depth is the maximum nesting of fields. Introspection fields have a separate, fixed limit of 16, which common tools
	// need.
	Depth int
	// Fields is the maximum number of selected fields of an operation, Aliases the maximum number of aliased fields, and
	// Directives the maximum number of directives in the document.
	Fields, Aliases, Directives int
	// Values is the maximum number of argument values. It counts literals and the contents of variables, including
	// members and items; a variable counts once for each type of its positions. Comparisons of the arguments of fields
	// with the same name count too.
	Values int
	// RootMutations is the maximum number of root fields of a mutation. Independent of this limit, only one of them may
	// cause cost.
	RootMutations int
	// Calls is the maximum number of v2 calls of a request, Response the maximum length of the response in bytes.
	Calls, Response int
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
			Document: 102400, Tokens: 1000, Depth: 10, Fields: 1000, Aliases: 10,
			Directives: 10, Values: 10000, RootMutations: 1, Calls: 64, Response: 8 << 20,
		},
	}
}
