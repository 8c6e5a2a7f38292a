package schema

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// CanonicalQuery returns the query to send upstream: the operation's own
// parameters with their values, and nothing else. Parameters the operation does
// not have are dropped, as the platform ignores them too, except where it is not
// known which it has. A parameter sent more
// than once, a value of the wrong type, and parameters that exclude or need each
// other are violations; the query is then nil.
//
// A documented default is dropped from a query without include if the operation has rules between parameters: generated clients send every
// default, and count=1 alone asks for nothing.
//
// The values are those of the caller, except booleans, which clients spell in several ways.
func (op *Operation) CanonicalQuery(query url.Values) (url.Values, []Violation) {
	if op.undescribed {
		return plainQuery(query)
	}
	out := make(url.Values, len(query))
	var vs []Violation
	for _, p := range op.Query {
		values := query[p.Name]
		switch {
		case p.Repeats && len(values) > 0:
			vs = append(vs, op.checkElements(&p, values)...)
			out[p.Name] = values
		case len(values) > 1:
			vs = append(vs, inQuery(http.StatusBadRequest, "repeated", "must not be sent more than once", p.Name))
		case len(values) == 1:
			vs = append(vs, op.checkParameter(&p, values[0])...)
			value := values[0]
			if b, isBoolean := typed(p.Type, value).(bool); isBoolean {
				value = strconv.FormatBool(b)
			}
			if p.Default == "" || value != p.Default || len(op.queryRules) == 0 || query.Has("include") {
				out[p.Name] = []string{value}
			}
		case p.Required:
			vs = append(vs, inQuery(http.StatusUnprocessableEntity, "required", "is missing", p.Name))
		}
	}
	for _, r := range op.queryRules {
		r.check(out, func(parameter, message string) {
			vs = append(vs, inQuery(statusOf(r.name), r.name, message, parameter))
		})
	}
	if len(vs) > 0 {
		return nil, tidy(vs)
	}
	return out, nil
}

// checkParameter holds one value against the parameter's schema.
func (op *Operation) checkParameter(p *Parameter, value string) []Violation {
	if p.List {
		return op.checkElements(p, strings.Split(value, ","))
	}
	return op.checkValue(p, typed(p.Type, value))
}

// checkElements holds the elements of a list against the parameter's schema.
func (op *Operation) checkElements(p *Parameter, elements []string) []Violation {
	items := make([]any, len(elements))
	for i, item := range elements {
		items[i] = typed(p.Type, item)
	}
	return op.checkValue(p, items)
}

func (op *Operation) checkValue(p *Parameter, doc any) []Violation {
	vs := p.judge.validate(doc)
	for i, v := range vs {
		vs[i].Pointer = ""
		vs[i].Location = "query." + p.Name + strings.TrimPrefix(v.Location, "$")
	}
	return vs
}

// parameter returns the parameter of the query with a name, nil if the operation has none.
func (op *Operation) parameter(name string) *Parameter {
	i := slices.IndexFunc(op.Query, func(p Parameter) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &op.Query[i]
}

// MaxPage returns the largest limit of a page of the list that the operation reads, 0 if the
// operation does not read a list in pages.
func (op *Operation) MaxPage() int {
	if limit := op.parameter("limit"); limit != nil && op.parameter("cursor") != nil {
		return limit.Maximum
	}
	return 0
}

// UnknownParameters returns the names in a query that are not parameters of the operation, sorted. It
// returns none for an operation whose parameters are not known.
func (op *Operation) UnknownParameters(query url.Values) (names []string) {
	if op.undescribed {
		return nil
	}
	for name := range query {
		if op.parameter(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// typed reads a value as the JSON type a parameter has; a value of another type stays a
// string, which the schema then refuses. A boolean may be spelled as [strconv.ParseBool] takes it: Python
// clients send True.
func typed(kind, value string) any {
	if kind == "integer" && isPlainInteger(value) {
		return json.Number(value)
	}
	if b, err := strconv.ParseBool(value); kind == "boolean" && err == nil {
		return b
	}
	return value
}

// ValidPathParam reports whether value, already unescaped, can be the path
// parameter name of the operation. Ids are letters, digits, "_" and "-"; those
// of the catalog may contain spaces and some punctuation as well. Nothing that
// passes can change the shape of a path.
func (op *Operation) ValidPathParam(name, value string) bool {
	i := slices.IndexFunc(op.PathParams, func(p Parameter) bool { return p.Name == name })
	return i >= 0 && op.PathParams[i].judge.compiled().schema.Pattern.MatchString(value)
}

// queryRules returns the rules between the parameters of an operation's query.
func queryRules(operation string) []queryRule {
	availability := queryRule{"availability", checkAvailability}
	switch operation {
	case "listGpuTypes", "getGpuType":
		return []queryRule{availability, {"cudaConstraint", checkCUDAQuery}}
	case "listCpuTypes", "getCpuType":
		return []queryRule{availability, {"powerOfTwo", checkVCPUQuery}}
	case "listBilling", "listPodBilling", "listServerlessBilling", "listEndpointBilling",
		"listNetworkVolumeBilling", "listClusterBilling":
		return []queryRule{{"timeRange", checkTimeRange}}
	}
	return nil
}

// statusOf returns the status of a query rule: a value that can never be right
// is 422, parameters that do not go together are 400.
func statusOf(rule string) int {
	if rule == "powerOfTwo" {
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadRequest
}

// checkAvailability: the filters of the catalog belong to the availability
// that include asks for, and asking for it needs a product.
func checkAvailability(query url.Values, report func(parameter, message string)) {
	if query.Has("include") {
		if !query.Has("product") {
			report("include", "needs 'product' beside it")
		}
		return
	}
	for _, name := range []string{
		"product", "count", "cloud", "countryCodes", "cudaVersions", "minCudaVersion", "vcpuCount",
	} {
		if query.Has(name) {
			report(name, "needs 'include' beside it")
		}
	}
}

// checkCUDAQuery: versions are named one by one or by the lowest.
func checkCUDAQuery(query url.Values, report func(parameter, message string)) {
	if query.Has("cudaVersions") && query.Has("minCudaVersion") {
		report("cudaVersions", "cannot be combined with 'minCudaVersion'")
	}
}

// checkVCPUQuery: CPU shapes come in powers of two.
func checkVCPUQuery(query url.Values, report func(parameter, message string)) {
	n, err := strconv.ParseInt(query.Get("vcpuCount"), 10, 64)
	if err == nil && n > 0 && n&(n-1) != 0 {
		report("vcpuCount", "must be a power of two")
	}
}

// checkTimeRange: a time range is given by its ends or by its length.
func checkTimeRange(query url.Values, report func(parameter, message string)) {
	if query.Has("lastN") && (query.Has("startTime") || query.Has("endTime")) {
		report("lastN", "cannot be combined with 'startTime' or 'endTime'")
	}
}
