package graphql

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	configfault "github.com/tollgate-dev/tollgate/config/fault"
)

// Config is what an operator may set about the GraphQL interface. Start from
// DefaultConfig: the zero value has no limits that a document could meet.
type Config struct {
	// Brand is the platform's own name as legacy clients spell it inside an
	// identifier: the template field and argument "is<Brand>". Letters and
	// digits. Empty (the default) leaves that field and argument out.
	Brand string `yaml:"brand"`
	// Introspection answers __schema and __type. Off, they are refused with
	// "GraphQL introspection is not allowed". Default true.
	Introspection bool `yaml:"introspection"`
	// CreateBudget is how long after its arrival a request that creates a pod
	// or a cluster still starts a new attempt at placing it. Default 9s,
	// because the oldest command-line client gives up after 10s.
	CreateBudget time.Duration `yaml:"create_budget"`
	// CreateTimeout ends a request that creates a pod or a cluster, attempt
	// under way included. Default 25s: clients give up after 30s.
	CreateTimeout time.Duration `yaml:"create_timeout"`
	// Timeout ends every other request. Default 9s.
	Timeout time.Duration `yaml:"timeout"`
	// StockNoneAsNull writes a stock level of "none" as null, as price
	// collectors expect, instead of the word None. Default false.
	StockNoneAsNull bool `yaml:"stock_none_as_null"`
	// SaveEndpointReset makes saveEndpoint on an existing endpoint put worker
	// maximum, idle timeout and scaler value back to 3, 10 and 4 when they are
	// left out, as the retired service did. Default false: left out means
	// unchanged.
	SaveEndpointReset bool `yaml:"save_endpoint_reset"`
	// GPUMinimums sends minVcpuCount and minMemoryInGb on as the per-GPU
	// minimums of a create. Turn it off for a platform whose create refuses
	// them. Default true.
	GPUMinimums bool `yaml:"gpu_minimums"`
	// TemplateRollout applies an edited template to the endpoints that were
	// bound to it through this gateway, as the retired service did. Default
	// true.
	TemplateRollout bool `yaml:"template_rollout"`
	// RestartAfterEdit restarts a running pod whose container settings
	// podEditJob changed, when the platform did not. Default true.
	RestartAfterEdit bool `yaml:"restart_after_edit"`
	// Deprecated is the date the Deprecation header gives (RFC 9745), as
	// YYYY-MM-DD. Default 2026-11-15, when the older of the retired interfaces
	// ends.
	Deprecated string `yaml:"deprecated"`
	// Sunset is the date the Sunset header gives (RFC 8594), as YYYY-MM-DD.
	// Empty (the default) leaves the header out: no day has been named.
	Sunset string `yaml:"sunset"`
	// Limits bounds one request.
	Limits Limits `yaml:"limits"`
}

// Limits bounds what one request may ask for. Every refusal names the limit.
// Counts are taken after fragments are expanded.
type Limits struct {
	// Document is the longest query document, in bytes. Default 102400.
	Document int `yaml:"document"`
	// Tokens is the most lexical tokens in a document, comments included.
	// Default 1000.
	Tokens int `yaml:"tokens"`
	// Depth is the deepest nesting of fields. Default 10. Introspection fields
	// have their own, fixed bound of 16, which the usual tools need.
	Depth int `yaml:"depth"`
	// Fields is the most fields one operation may select. Default 1000.
	Fields int `yaml:"fields"`
	// Aliases is the most fields given another name. Default 10.
	Aliases int `yaml:"aliases"`
	// Directives is the most directives in a document. Default 10.
	Directives int `yaml:"directives"`
	// Values is the most values in arguments: literals, and what variables hold,
	// members and items each counted, a variable once for every type it is used
	// as. Comparing the arguments of fields that share a name counts too.
	// Default 10000.
	Values int `yaml:"values"`
	// RootMutations is the most root fields of a mutation. Default 1. Whatever
	// it says, at most one of them may cost money.
	RootMutations int `yaml:"root_mutations"`
	// Calls is the most v2 calls one request may make. Default 64: a create
	// with its 24 candidates and the reads before it stays below.
	Calls int `yaml:"calls"`
	// Response is the longest answer, in bytes. Default 8388608.
	Response int `yaml:"response"`
}

// DefaultConfig returns the settings of an installation that sets nothing.
func DefaultConfig() Config {
	return Config{
		Introspection:    true,
		CreateBudget:     9 * time.Second,
		CreateTimeout:    25 * time.Second,
		Timeout:          9 * time.Second,
		GPUMinimums:      true,
		TemplateRollout:  true,
		RestartAfterEdit: true,
		Deprecated:       "2026-11-15",
		Limits: Limits{
			Document: 102400, Tokens: 1000, Depth: 10, Fields: 1000, Aliases: 10,
			Directives: 10, Values: 10000, RootMutations: 1, Calls: 64, Response: 8 << 20,
		},
	}
}

var brandPattern = regexp.MustCompile(`^[A-Za-z0-9]*$`)

// Validate reports every fault, each with the path of the setting below
// "graphql".
func (c Config) Validate() error {
	var faults []error
	if !brandPattern.MatchString(c.Brand) {
		faults = append(faults, configfault.Errorf("brand", "%q: want letters and digits only", c.Brand))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"create_budget", c.CreateBudget}, {"create_timeout", c.CreateTimeout}, {"timeout", c.Timeout}} {
		if d.value <= 0 {
			faults = append(faults, configfault.Errorf(d.name, "%v: want more than 0", d.value))
		}
	}
	if c.CreateBudget > c.CreateTimeout {
		faults = append(faults, configfault.Errorf("create_budget", "%v: want at most create_timeout, %v", c.CreateBudget, c.CreateTimeout))
	}
	for _, d := range []struct {
		name, value string
		optional    bool
	}{{"deprecated", c.Deprecated, false}, {"sunset", c.Sunset, true}} {
		if _, err := time.Parse(time.DateOnly, d.value); err != nil && (d.value != "" || !d.optional) {
			faults = append(faults, configfault.Errorf(d.name, "%q: want a date as YYYY-MM-DD", d.value))
		}
	}
	return errors.Join(append(faults, c.Limits.validate()...)...)
}

func (l Limits) validate() []error {
	var faults []error
	for _, b := range []struct {
		name  string
		value int
	}{
		{"document", l.Document},
		{"tokens", l.Tokens},
		{"depth", l.Depth},
		{"fields", l.Fields},
		{"aliases", l.Aliases},
		{"directives", l.Directives},
		{"values", l.Values},
		{"root_mutations", l.RootMutations},
		{"calls", l.Calls},
		{"response", l.Response},
	} {
		if b.value <= 0 {
			faults = append(faults, configfault.Errorf("limits."+b.name, "%d: want at least 1", b.value))
		}
	}
	return faults
}

// deprecation is the value of the Deprecation header, a structured-field date
// (RFC 9745 section 2.1).
func (c Config) deprecation() string {
	t, _ := time.Parse(time.DateOnly, c.Deprecated) // checked by Validate
	return "@" + strconv.FormatInt(t.Unix(), 10)
}

// sunset is the value of the Sunset header, "" for none.
func (c Config) sunset() string {
	t, err := time.Parse(time.DateOnly, c.Sunset)
	if err != nil {
		return ""
	}
	return t.Format(http.TimeFormat)
}
