package filter

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// validate checks a v2 call against the operation's description: IDs, query, body schema, and rules that a schema cannot express. It
// returns 422 for schema violations and malformed template IDs, and 400 for other violations, with one located message per violation. It
// also returns 400 for jobs without input, and for unknown members if the platform returns 400 for them. It drops documented defaults that
// the operation would refuse. It sets ex.Query to the accepted and forwarded parameters, and ex.Body.Doc to its canonical form.
func validate(ex *Exchange) error {
	op := ex.Operation
	ex.Body.Doc = op.WithoutRefusedDefault(ex.Body.Doc)
	for name, value := range ex.Params {
		if !op.ValidPathParam(name, value) {
			return problem.BadRequest.Newf("the path parameter {%s} is not a well-formed identifier", name)
		}
	}
	query, faults := op.CanonicalQuery(ex.Query)
	if len(faults) > 0 {
		p := problem.BadRequest.New("the query is not valid for this operation")
		if slices.ContainsFunc(faults, isInvalid) {
			p = problem.Invalid.New("Request validation failed.")
		}
		return violations(p, faults)
	}
	for _, name := range ex.Progress.forwarded {
		query[name] = ex.Query[name]
	}
	ex.Query = query
	if err := reservedLabel(ex); err != nil {
		return err
	}
	if !ex.Body.HasDoc {
		return nil
	}
	invalid, broken := ex.check(ex.Body.Doc)
	switch {
	case len(invalid) > 0 && ex.lacksInput():
		return violations(problem.RuleBroken.New("the body of a job must contain the field 'input'"), invalid)
	case len(invalid) > 0 && !slices.ContainsFunc(invalid, isInvalid):
		return violations(problem.RuleBroken.New("the body has members that this operation does not accept"), invalid)
	case len(invalid) > 0, slices.ContainsFunc(broken, isInvalid):
		return violations(problem.Invalid.New("Request validation failed."), append(invalid, broken...))
	case len(broken) > 0:
		return violations(problem.RuleBroken.New("the body has values that this operation does not accept"), broken)
	}
	if err := reservedName(ex); err != nil {
		return err
	}
	ex.Body.Doc = schema.CanonicalBody(ex.Body.Doc)
	return nil
}

// isInvalid reports whether a violation requires a 422.
func isInvalid(v schema.Violation) bool { return v.Status == problem.Invalid.Status() }

// lacksInput reports whether the body is a job without input, which the platform refuses with 400.
func (ex *Exchange) lacksInput() bool {
	job, isObject := ex.Body.Doc.(map[string]any)
	_, given := job["input"]
	return isObject && !given && (ex.Operation.ID == "run" || ex.Operation.ID == "runsync")
}

// scaleAt is the default for both scaling types of an endpoint: seconds that jobs wait, or requests per worker, before a worker is added.
const scaleAt = json.Number("4")

// setEndpointDefaults adds members to the body of a new endpoint that callers may omit although the API description requires them: the
// type, unless a template supplies it, and the scaling. A body without GPU and CPU is left unchanged, so that it is refused with the same
// error as by the platform.
func setEndpointDefaults(ex *Exchange) {
	body, isObject := ex.Body.Doc.(map[string]any)
	if ex.Operation.ID != "createEndpoint" || !isObject {
		return
	}
	given := func(name string) bool { _, has := body[name]; return has }
	if given("scaling") && (given("type") || given("templateId")) || !given("gpu") && !given("cpu") {
		return
	}
	body = maps.Clone(body)
	if !given("scaling") {
		body["scaling"] = map[string]any{"type": "QUEUE_DELAY", "queueDelay": scaleAt}
		if body["type"] == "LOAD_BALANCER" {
			body["scaling"] = map[string]any{"type": "REQUEST_COUNT", "requestCount": scaleAt}
		}
	}
	if !given("type") && !given("templateId") {
		body["type"] = "QUEUE"
	}
	ex.Body.Doc = body
}

// refuseTemplateConflicts returns 400 for a new cluster with both a template and container settings, like the platform. Settings added by
// policies are checked in seal instead.
func refuseTemplateConflicts(ex *Exchange) error {
	body, _ := ex.Body.Doc.(map[string]any)
	if ex.Operation.ID != "createCluster" || body["templateId"] == nil {
		return nil
	}
	var faults []schema.Violation
	for _, name := range templateConflicts(body) {
		faults = append(faults, schema.Violation{Location: "$." + name, Message: "cannot be combined with 'templateId'"})
	}
	if len(faults) == 0 {
		return nil
	}
	return violations(problem.RuleBroken.New("members of the body contradict each other"), faults)
}

// templateConflicts lists the members of a cluster's body that the platform does not accept together with a template (reference
// platform-v2-growth, section 3, X7).
func templateConflicts(body map[string]any) []string {
	return slices.DeleteFunc([]string{"args", "cmd", "disk", "entrypoint", "env", "image", "mounts", "ports"}, func(name string) bool {
		_, given := body[name]
		return !given
	})
}

// check validates a body against the operation's schema and, if it is valid, against the rules that span several members.
func (ex *Exchange) check(body any) (invalid, broken []schema.Violation) {
	ex.Body.checks++
	if invalid = ex.Operation.ValidateBody(body); len(invalid) == 0 {
		broken = ex.Operation.CheckRules(body)
	}
	return invalid, broken
}

func violations(p *problem.Problem, faults []schema.Violation) *problem.Problem {
	p.Errors = make([]string, len(faults))
	for i, f := range faults {
		p.Errors[i] = f.String()
	}
	return p
}
