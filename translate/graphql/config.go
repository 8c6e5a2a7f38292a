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
	Brand             string        `yaml:"brand" doc:"the platform's own name as legacy clients spell it inside an identifier: the template field and argument 'is<Brand>'. Letters and digits. Empty (the default) leaves that field and argument out"`
	Introspection     bool          `yaml:"introspection" doc:"answers __schema and __type. Off, they are refused with 'GraphQL introspection is not allowed'"`
	CreateBudget      time.Duration `yaml:"create_budget" doc:"how long after its arrival a request that creates a pod or a cluster still starts a new attempt at placing it"`
	CreateTimeout     time.Duration `yaml:"create_timeout" doc:"ends a request that creates a pod or a cluster, attempt under way included"`
	Timeout           time.Duration `yaml:"timeout" doc:"ends every other request"`
	StockNoneAsNull   bool          `yaml:"stock_none_as_null" doc:"writes a stock level of 'none' as null, as price collectors expect, instead of the word None"`
	SaveEndpointReset bool          `yaml:"save_endpoint_reset" doc:"makes saveEndpoint on an existing endpoint put worker maximum, idle timeout and scaler value back to 3, 10 and 4 when they are left out, as the retired service did"`
	GPUMinimums       bool          `yaml:"gpu_minimums" doc:"sends minVcpuCount and minMemoryInGb on as the per-GPU minimums of a create. Turn it off for a platform whose create refuses them"`
	TemplateRollout   bool          `yaml:"template_rollout" doc:"applies an edited template to the endpoints that were bound to it through this gateway, as the retired service did"`
	RestartAfterEdit  bool          `yaml:"restart_after_edit" doc:"restarts a running pod whose container settings podEditJob changed, when the platform did not"`
	Deprecated        string        `yaml:"deprecated" doc:"the date the Deprecation header gives (RFC 9745), as YYYY-MM-DD"`
	Sunset            string        `yaml:"sunset" doc:"the date the Sunset header gives (RFC 8594), as YYYY-MM-DD. Empty (the default) leaves the header out: no day has been named"`
	Limits            Limits        `yaml:"limits" doc:"bounds one request"`
}

// Limits bounds what one request may ask for. Every refusal names the limit.
// Counts are taken after fragments are expanded.
type Limits struct {
	Document      int `yaml:"document" doc:"the longest query document" unit:"bytes"`
	Tokens        int `yaml:"tokens" doc:"the most lexical tokens in a document, comments included"`
	Depth         int `yaml:"depth" doc:"the deepest nesting of fields. Introspection fields have their own, fixed bound of 16, which the usual tools need"`
	Fields        int `yaml:"fields" doc:"the most fields one operation may select"`
	Aliases       int `yaml:"aliases" doc:"the most fields given another name"`
	Directives    int `yaml:"directives" doc:"the most directives in a document"`
	Values        int `yaml:"values" doc:"the most values in arguments: literals, and what variables hold, members and items each counted, a variable once for every type it is used as. Comparing the arguments of fields that share a name counts too"`
	RootMutations int `yaml:"root_mutations" doc:"the most root fields of a mutation. Whatever it says, at most one of them may cost money"`
	Calls         int `yaml:"calls" doc:"the most v2 calls one request may make"`
	Response      int `yaml:"response" doc:"the longest response" unit:"bytes"`
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
