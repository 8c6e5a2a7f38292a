package dev

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config"
)

// Project holds the endpoints of a directory. A file with faults contributes no endpoints.
type Project struct {
	// Dir is the absolute path of the directory, without symbolic links.
	Dir string
	// Python is the version of the interpreter that read the project, or "" if no interpreter read it.
	Python    string
	Endpoints []*Endpoint
	// Routes lists the routes of all endpoints, in the order of Endpoints. openapi describes them as an OpenAPI document.
	Routes  []Route
	openapi []byte
	// Modules maps the path of each local module that functions import to its source.
	Modules map[string]string
	// Faults lists errors: a file with an error is not served. Notices lists code that looks like an endpoint but is not served, and
	// decorators that workers ignore.
	Faults, Notices []Fault
	// inputs is the state of the files before they were read.
	inputs config.Inputs
}

// Fault is an error in a file of the project. Line and Column are 1-based. A Line of 0 means the whole file, and a Column of 0 means the
// whole line.
type Fault struct { //nolint:errname // also used as a list entry
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func (f Fault) Error() string {
	switch {
	case f.File == "":
		return f.Text
	case f.Line == 0:
		return f.File + ": " + f.Text
	case f.Column == 0:
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
	default:
		return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Text)
	}
}

// Endpoint is an endpoint defined in a file of a project.
type Endpoint struct {
	// File is the slash-separated path of the defining file, relative to the project. Prefix is the path prefix of the endpoint's routes.
	File, Prefix string
	Line         int    `json:"line"`
	Column       int    `json:"column"`
	Config       Config `json:"options"`
	// Toolkit is the Python package that defines the endpoint. Its worker images run the functions.
	Toolkit string `json:"toolkit"`
	// Client is true for endpoints with their own image and for existing endpoints. Their calls are forwarded unchanged.
	Client    bool        `json:"client"`
	Functions []*Function `json:"functions"`
}

// Config is the configuration of an endpoint. A manifest uses the YAML names of the fields.
type Config struct {
	Name               string   `json:"name" yaml:"name"`
	ID                 string   `json:"id" yaml:"id"`
	Image              string   `json:"image" yaml:"image"`
	GPU                []string `json:"gpu" yaml:"gpu"`
	GPUCount           int      `json:"gpu_count" yaml:"gpu_count"`
	CPU                []string `json:"cpu" yaml:"cpu"`
	Workers            []int    `json:"workers" yaml:"workers"`
	IdleTimeout        int      `json:"idle_timeout" yaml:"idle_timeout"`
	Dependencies       []string `json:"dependencies" yaml:"dependencies"`
	SystemDependencies []string `json:"system_dependencies" yaml:"system_dependencies"`
	// Env holds environment variables. A change of Env alone does not update an existing endpoint.
	Env map[string]string `json:"env" yaml:"env"`
	// ExecutionTimeout is in milliseconds. 0 means 60000 for calls through this server, and the platform's default of 300000 for all other
	// calls.
	ExecutionTimeout int      `json:"execution_timeout_ms" yaml:"execution_timeout_ms"`
	ScalerType       string   `json:"scaler_type" yaml:"scaler_type"`
	ScalerValue      int      `json:"scaler_value" yaml:"scaler_value"`
	Template         Template `json:"template" yaml:"template"`
	PythonVersion    string   `json:"python_version" yaml:"python_version"`
	Accelerate       bool     `json:"accelerate_downloads" yaml:"accelerate_downloads"`
	FlashBoot        bool     `json:"flashboot" yaml:"flashboot"`
	Volumes          []string `json:"volume" yaml:"volume"`
	DataCenters      []string `json:"datacenter" yaml:"datacenter"`
	MinCUDA          string   `json:"min_cuda_version" yaml:"min_cuda_version"`
}

// Template holds the template settings of an endpoint.
type Template struct {
	Disk int               `json:"containerDiskInGb" yaml:"containerDiskInGb"`
	Env  map[string]string `json:"env" yaml:"env"`
}

// defaults returns a configuration in which every field has its default value.
func defaults() Config {
	return Config{GPUCount: 1, Workers: []int{0, 1}, IdleTimeout: 60, ScalerValue: 4, Accelerate: true, FlashBoot: true}
}

// Function is something that a route can call: a Python function, or a job or an HTTP route of an image.
type Function struct {
	Name     string            `json:"name"`
	Class    string            `json:"class"`
	Line     int               `json:"line"`
	Column   int               `json:"column"`
	Summary  string            `json:"summary"`
	Params   []Param           `json:"params"`
	Variadic bool              `json:"variadic"`
	Source   string            `json:"source"`
	Modules  map[string]string `json:"modules"`
	Method   string            `json:"method"`
	Path     string            `json:"path"`
}

// Param is a parameter of a function. A Positional parameter cannot be passed by name.
type Param struct {
	Name       string          `json:"name"`
	Schema     json.RawMessage `json:"schema"`
	Required   bool            `json:"required"`
	Positional bool            `json:"positional"`
	Default    json.RawMessage `json:"default,omitempty"`
}

// UnmarshalJSON decodes an endpoint. Missing options get their default values.
func (e *Endpoint) UnmarshalJSON(raw []byte) error {
	type plain Endpoint
	e.Config = defaults()
	return json.Unmarshal(raw, (*plain)(e))
}

// balanced reports whether the endpoint is load-balanced and serves HTTP routes. All other endpoints run jobs.
func (e *Endpoint) balanced() bool { return e.Functions[0].Method != "" }

// name returns the local name of the endpoint. At the platform, the name begins with livePrefix.
func (e *Endpoint) name() string { return cmp.Or(e.Config.Name, e.Config.ID) }

// livePrefix is the prefix of the names of endpoints that the server creates.
const livePrefix = "live-"

// endpointName matches valid endpoint names.
var endpointName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// parameter matches a path parameter.
var parameter = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// finish adds a fault for each name or route that two endpoints use, removes the endpoints of files with faults, and sets the routes of the
// others.
func (p *Project) finish() {
	names, paths := map[string]*Endpoint{}, map[string]*Endpoint{}
	for _, e := range p.Endpoints {
		if other := names[e.Config.Name]; other != nil && e.Config.Name != "" {
			p.Faults = append(p.Faults, e.fault("the name %s is already used by %s:%d", e.Config.Name, other.File, other.Line))
		}
		names[e.Config.Name] = e
		for _, r := range p.routesOf(e) {
			key := r.Method + " " + parameter.ReplaceAllString(r.Path, "{}")
			if other := paths[key]; other != nil {
				text := fmt.Sprintf("%s %s is already a route of %s:%d", r.Method, r.Path, other.File, other.Line)
				p.Faults = append(p.Faults, Fault{e.File, r.Function.Line, r.Function.Column, text})
			}
			paths[key] = e
		}
	}
	broken := map[string]bool{}
	for _, f := range p.Faults {
		broken[f.File] = true
	}
	p.Endpoints = slices.DeleteFunc(p.Endpoints, func(e *Endpoint) bool { return broken[e.File] })
	for _, e := range p.Endpoints {
		p.Routes = append(p.Routes, p.routesOf(e)...)
	}
	p.openapi = openAPI(p.Routes)
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
}

// fault returns a Fault with the position of the endpoint.
func (e *Endpoint) fault(format string, args ...any) Fault {
	return Fault{e.File, e.Line, e.Column, fmt.Sprintf(format, args...)}
}

// Route maps a method and a path to a function of an endpoint.
type Route struct {
	Method, Path string
	Endpoint     *Endpoint
	Function     *Function
}

func (p *Project) routesOf(e *Endpoint) []Route {
	jobs := 0 // in the file
	for _, other := range p.Endpoints {
		if other.Prefix == e.Prefix && !other.balanced() {
			jobs += len(other.Functions)
		}
	}
	routes := make([]Route, len(e.Functions))
	for i, f := range e.Functions {
		routes[i] = Route{Method: http.MethodPost, Path: e.Prefix + "/runsync", Endpoint: e, Function: f}
		switch {
		case e.balanced():
			routes[i].Method, routes[i].Path = f.Method, e.Prefix+f.Path
		case jobs > 1:
			routes[i].Path = e.Prefix + "/" + f.Name + "/runsync"
		}
	}
	return routes
}

// prefixOf returns the path prefix of the routes of a file.
func prefixOf(file string) string { return "/" + strings.TrimSuffix(file, ".py") }
