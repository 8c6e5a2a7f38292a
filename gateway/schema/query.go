package schema

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// CanonicalQuery returns the query to send to the platform. It drops parameters that the operation does not have, because the platform
// ignores them; it keeps them if the parameters of the operation are unknown. It returns violations and a nil query if a parameter is
// repeated, a value has the wrong type, or a rule between parameters is violated.
//
// If the operation has rules between parameters, and the query does not contain the parameter include, CanonicalQuery also drops parameters
// with their default values. Generated clients send all defaults, which would otherwise violate the rules.
//
// CanonicalQuery does not change values, except for booleans, which clients spell in several ways.
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
			out[p.Name] = values // the rules below must not report it as missing
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

// checkParameter validates one value of a parameter.
func (op *Operation) checkParameter(p *Parameter, value string) []Violation {
	if p.List {
		return op.checkElements(p, strings.Split(value, ","))
	}
	return op.checkValue(p, typed(p.Type, value))
}

// checkElements validates the elements of a list parameter.
func (op *Operation) checkElements(p *Parameter, elements []string) []Violation {
	items := make([]any, len(elements))
	for i, item := range elements {
		items[i] = typed(p.Type, item)
	}
	return op.checkValue(p, items)
}

func (op *Operation) checkValue(p *Parameter, doc any) []Violation {
	vs := p.validator.validate(doc)
	for i, v := range vs {
		vs[i].Pointer = ""
		vs[i].Location = "query." + p.Name + strings.TrimPrefix(v.Location, "$")
	}
	return vs
}

// parameter returns the query parameter with the given name, or nil if it does not exist.
func (op *Operation) parameter(name string) *Parameter {
	i := slices.IndexFunc(op.Query, func(p Parameter) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &op.Query[i]
}

// MaxPage returns the maximum page size of a list operation, or 0 if the operation does not return pages.
func (op *Operation) MaxPage() int {
	if limit := op.parameter("limit"); limit != nil && op.parameter("cursor") != nil {
		return limit.Maximum
	}
	return 0
}

// UnknownParameters returns the names in a query that are not parameters of the operation, sorted. The result is empty if the parameters of
// the operation are unknown.
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

// typed converts a value to the JSON type of a parameter. If this is impossible, it returns the value as a string, which the schema then
// rejects. It accepts all spellings of booleans that [strconv.ParseBool] accepts, because Python clients send True.
func typed(kind, value string) any {
	if kind == "integer" && isPlainInteger(value) {
		return json.Number(value)
	}
	if b, err := strconv.ParseBool(value); kind == "boolean" && err == nil {
		return b
	}
	return value
}

// ValidPathParam reports whether value, which must be unescaped, is valid for the path parameter with the given name. IDs consist of
// letters, digits, "_" and "-"; IDs in the catalog may also contain spaces and some punctuation. No valid value can change the structure of
// a path.
func (op *Operation) ValidPathParam(name, value string) bool {
	i := slices.IndexFunc(op.PathParams, func(p Parameter) bool { return p.Name == name })
	return i >= 0 && op.PathParams[i].validator.compiled().schema.Pattern.MatchString(value)
}

// queryRules returns the rules between the query parameters of an operation.
func queryRules(operation string) []queryRule {
	availability := queryRule{"availability", checkAvailability}
	switch operation {
	case "listGpuTypes", "getGpuType":
		return []queryRule{availability, {"cudaConstraint", checkCUDAQuery}}
	case "listCpuTypes", "getCpuType":
		return []queryRule{availability, {"vcpuQuery", checkVCPUQuery}}
	case "listBilling", "listPodBilling", "listServerlessBilling", "listEndpointBilling",
		"listNetworkVolumeBilling", "listClusterBilling":
		return []queryRule{{"timeRange", checkTimeRange}}
	}
	return nil
}

// statusOf returns the HTTP status for a violated rule. The platform responds with 422 to some values, and with 400 to all others.
func statusOf(rule string) int {
	if rule == "vcpuQuery" || rule == "template" {
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadRequest
}

// checkAvailability checks that catalog filters are used only with the parameter include, and that include is used only with product.
func checkAvailability(query url.Values, report func(parameter, message string)) {
	if query.Has("include") {
		if !query.Has("product") {
			report("include", "requires 'product'")
		}
		return
	}
	for _, name := range []string{
		"product", "count", "cloud", "countryCodes", "cudaVersions", "minCudaVersion", "vcpuCount",
	} {
		if query.Has(name) {
			report(name, "requires 'include'")
		}
	}
}

// checkCUDAQuery checks that a list of versions and a minimum version are not combined.
func checkCUDAQuery(query url.Values, report func(parameter, message string)) {
	if query.Has("cudaVersions") && query.Has("minCudaVersion") {
		report("cudaVersions", "cannot be combined with 'minCudaVersion'")
	}
}

// checkVCPUQuery checks that the vCPU count is a power of two.
func checkVCPUQuery(query url.Values, report func(parameter, message string)) {
	n, err := strconv.ParseInt(query.Get("vcpuCount"), 10, 64)
	if err == nil && n > 0 && n&(n-1) != 0 {
		report("vcpuCount", "must be a power of two")
	}
}

// checkTimeRange checks that a time range has either start and end or a length.
func checkTimeRange(query url.Values, report func(parameter, message string)) {
	if query.Has("lastN") && (query.Has("startTime") || query.Has("endTime")) {
		report("lastN", "cannot be combined with 'startTime' or 'endTime'")
	}
}
