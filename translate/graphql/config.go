package graphql

import (
	"errors"
	"time"

	configfault "github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Config holds the settings of the GraphQL interface. Start from
// DefaultConfig: the zero value has no limits that a document could meet.
type Config struct {
	Introspection bool          `yaml:"introspection" doc:"answers __schema and __type. Off, they are refused with 'GraphQL introspection is not allowed'"`
	CreateTimeout time.Duration `yaml:"create_timeout" doc:"ends a request that creates a pod or a cluster, attempt under way included"`
	Timeout       time.Duration `yaml:"timeout" doc:"ends every other request"`

	// CreateBudget is how long after its arrival a request that creates a pod or a
	// cluster still starts a new attempt at placing it, within CreateTimeout.
	CreateBudget time.Duration `yaml:"-"`
	// Limits bounds one request.
	Limits Limits `yaml:"-"`
	// Legacy are the settings that both dialects share.
	Legacy legacy.Config `yaml:"-"`
}

// Limits bounds one request. Every refusal names the limit.
// Counts are taken after fragments are expanded.
type Limits struct {
	// Document is the longest query document, in bytes, and Tokens the most lexical
	// tokens in it, comments included.
	Document, Tokens int
	// Depth is the deepest nesting of fields. Introspection fields have their own, fixed
	// bound of 16, which the usual tools need.
	Depth int
	// Fields is the most fields one operation may select, Aliases the most of them given
	// another name, and Directives the most directives in a document.
	Fields, Aliases, Directives int
	// Values is the most values in arguments: literals, and what variables hold, members
	// and items each counted, a variable once for every type it is used as. Comparing
	// the arguments of fields that share a name counts too.
	Values int
	// RootMutations is the most root fields of a mutation. With any value, at most one of
	// them may cost money.
	RootMutations int
	// Calls is the most v2 calls one request may make, Response the longest response, in
	// bytes.
	Calls, Response int
}

// DefaultConfig returns the settings of an installation that sets nothing.
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

// Validate reports every fault of a setting, each with its path below "graphql".
func (c Config) Validate() error {
	var faults configfault.Found
	faults.If(c.CreateTimeout <= 0, "create_timeout", "%v: want more than 0", c.CreateTimeout)
	faults.If(c.Timeout <= 0, "timeout", "%v: want more than 0", c.Timeout)
	return errors.Join(faults...)
}
