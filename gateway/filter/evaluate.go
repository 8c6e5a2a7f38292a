package filter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// EvaluatePolicies checks whether a v2 call is allowed. It has three stages: the call is validated against the API description, the
// resource after the call and its price are resolved, and the organisation's policies are evaluated. If policies change the body, the
// stages run again with the changed body until the policies no longer change it. The final body is then sealed, so that the call is sent
// exactly as it was checked.
type EvaluatePolicies struct {
	Policies Policies
	// Reads maps the IDs of operations to the operations that read the same resource; see ReadOperations.
	Reads map[string]*schema.Operation
	// Template is the operation that reads one template. Templates and Secrets are the operations that list the account's own templates and
	// its secrets.
	Template, Templates, Secrets *schema.Operation
	Reader                       *Reader
	Recorder                     *telemetry.Recorder
}

// Policies evaluates the policies of organisations, for EvaluatePolicies. It is implemented by *policies.Engine.
type Policies interface {
	Decide(ctx context.Context, org string, in *policies.Input) (policies.Decision, error)
	// PoliciesReading returns the names of the policies of an organisation that read the value at path in the input, an object that contains
	// the value, or a part of the value.
	PoliciesReading(org string, path ...string) []string
}

// The stages of EvaluatePolicies, as shown to users.
const (
	stageValidate = "validate"
	stageResolve  = "resolve state"
	stageEvaluate = "evaluate policies"
)

// Response headers with results of policies that did not prevent the call. HeaderWarning contains denials by policies in mode warn,
// HeaderMutation the changes that policies made to the body.
const (
	HeaderWarning  = "X-Tollgate-Warning"
	HeaderMutation = "X-Tollgate-Mutation"
)

// maxRounds is the maximum number of times that policies may change the body of one call.
const maxRounds = 3

// Name returns the name of the first of the three stages. Request records the names of the other two when it reaches them.
func (*EvaluatePolicies) Name() string { return stageValidate }

// Request returns a problem with a 4xx status if the call is invalid. It returns 403 with all denials if policies deny the call, and 503 if
// the policies cannot be evaluated. If the platform refuses to return a resource or a template that the call refers to, the platform's
// refusal becomes the response to the call. After success, ex.Body.Doc is the body to send.
func (f *EvaluatePolicies) Request(ctx context.Context, ex *Exchange) error {
	separateUnknownMembers(ex)
	sortParameters(ex)
	setEndpointDefaults(ex)
	if err := validate(ex); err != nil {
		return err
	}
	if err := refuseTemplateConflicts(ex); err != nil {
		return err
	}
	ex.enterStage(stageResolve)
	if err := f.resolve(ctx, ex); err != nil || ex.Response != nil {
		return err
	}
	ex.enterStage(stageEvaluate)
	began := f.Recorder.Now()
	d, err := f.decide(ctx, ex)
	if ex.Response != nil {
		return nil // a policy wrote the ID of a missing resource into the body
	}
	took := f.Recorder.Now().Sub(began)
	var refusal error
	if err == nil && len(d.Deny) > 0 {
		if refusal = f.missingTarget(ctx, ex, d.Deny); refusal == nil {
			refusal = requestApproval(ctx, ex, &d)
		}
	}
	ex.logDecision(ctx, d, err, took)
	if err != nil {
		return err
	}
	ex.recordDecision(d)
	if refusal != nil {
		return refusal
	}
	if ex.Opaque() {
		return f.Reader.RequireEndpoint(ctx, ex)
	}
	return seal(ex)
}

// decide evaluates the policies until they no longer change the body. The returned decision is based on the final ex.Evaluation.Input; its
// Mutate lists all changes made on the way.
func (f *EvaluatePolicies) decide(ctx context.Context, ex *Exchange) (policies.Decision, error) {
	given := ex.Body.Doc
	var done []policies.Mutation
	revision := ""
	for range maxRounds + 1 {
		d, err := f.evaluate(ctx, ex)
		if err != nil {
			return d, err
		}
		doc := given
		switch {
		case len(done) > 0 && d.Revision != revision:
			// The policies were replaced after they changed the body: start again with the caller's body.
			done = nil
		case len(d.Mutate) == 0:
			d.Mutate = done
			return d, nil
		default:
			if doc, err = policies.Apply(ex.Body.Doc, d.Mutate); err != nil {
				return d, evaluationFailed(err)
			}
			done, revision = append(done, d.Mutate...), d.Revision
		}
		if err := f.replaceBody(ctx, ex, doc); err != nil || ex.Response != nil {
			return d, err
		}
	}
	return policies.Decision{}, evaluationFailed(fmt.Errorf("policies still change the body after %d rounds", maxRounds))
}

// replaceBody sets the body to doc, and validates and resolves it in the same way as the caller's body.
func (f *EvaluatePolicies) replaceBody(ctx context.Context, ex *Exchange, doc any) error {
	ex.Body.Doc, ex.Body.HasDoc = doc, doc != nil
	if err := validate(ex); err != nil {
		p := problemOf(err)
		out := problem.PolicyUnavailable.New("the body is invalid after the organisation's policies changed it: " + p.Detail).Because(fmt.Errorf("%w: %s", err, strings.Join(p.Errors, "; ")))
		out.Errors = p.Errors
		return out
	}
	return f.resolve(ctx, ex)
}

// evaluate evaluates the policies once. If policies may change bodies, a call that creates a resource is evaluated twice. The first
// evaluation uses the body as it will be sent, so that policies can set omitted fields. The second evaluation uses the body with the
// platform's defaults, and produces all other decisions.
func (f *EvaluatePolicies) evaluate(ctx context.Context, ex *Exchange) (policies.Decision, error) {
	row, _ := operation.Lookup(ex.Operation.ID)
	twice := row.Verb == operation.VerbCreate && ex.Tenant.ChangesBodies
	for {
		var sent policies.Decision
		var err error
		if twice {
			in := *ex.Evaluation.Input
			in.Request.Body = bodyForPolicies(ex, ex.Body.Doc)
			if sent, err = f.Policies.Decide(ctx, ex.Caller.Org, &in); err != nil {
				return sent, evaluationFailed(err)
			}
			if len(sent.Mutate) > 0 {
				return sent, nil
			}
		}
		d, err := f.Policies.Decide(ctx, ex.Caller.Org, ex.Evaluation.Input)
		if err != nil {
			return d, evaluationFailed(err)
		}
		if ex.Evaluation.PriceErr != nil && f.deniedOnlyByPrice(ex.Caller.Org, d.Deny) {
			return policies.Decision{}, problem.PriceUnavailable.New("the platform's price list is unavailable; try again later").
				With("Retry-After", "5").Because(ex.Evaluation.PriceErr)
		}
		if !twice || d.Revision == sent.Revision {
			return d, nil
		}
	}
}

// deniedOnlyByPrice reports whether all denials come from policies that read prices, so that a missing price list may be the reason.
func (f *EvaluatePolicies) deniedOnlyByPrice(org string, denied []policies.Violation) bool {
	readers := append(f.Policies.PoliciesReading(org, "cost"), f.Policies.PoliciesReading(org, "catalog")...)
	return len(denied) > 0 && !slices.ContainsFunc(denied, func(v policies.Violation) bool { return !slices.Contains(readers, v.Policy) })
}

// missingTarget returns a problem of kind NotFound if the target of a denied run does not exist and only policies that read prices denied
// the run. Otherwise it returns nil.
func (f *EvaluatePolicies) missingTarget(ctx context.Context, ex *Exchange, denied []policies.Violation) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	if row.Kind != operation.KindJob || row.Opaque || ex.Tenant.Runs.For(ex.Params["id"]).Known() ||
		!f.deniedOnlyByPrice(ex.Caller.Org, denied) {
		return nil
	}
	_, err := f.Reader.OwnsTarget(ctx, ex)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Kind == problem.NotFound {
		return p
	}
	return nil
}

// recordDecision stores the policy decision in the exchange and its event.
func (ex *Exchange) recordDecision(d policies.Decision) {
	ex.Evaluation.Verdict = d
	e := ex.Event
	e.PolicyRevision = d.Revision
	e.Denied, e.Warned, e.Shadowed = policyNames(d.Deny), policyNames(d.Warn), policyNames(d.Shadow)
	for _, x := range d.Excepted {
		e.Excepted = appendUnique(e.Excepted, x.Exception)
	}
	for _, m := range d.Mutate {
		e.Changed = appendUnique(e.Changed, m.Policy+": "+m.Pointer)
	}
}

// ReplaceBody replaces the outbound body after the policies have evaluated it. body must be equivalent to the evaluated body, because the
// policies do not evaluate it again.
func (ex *Exchange) ReplaceBody(body any) { ex.Body.Doc = body }

// ExtendBody replaces the outbound body with body, which has additional members that the platform may not support. If the platform refuses
// body with 400 or 422, the gateway sends the previous body once.
func (ex *Exchange) ExtendBody(body any) { ex.Body.beforeExtension, ex.Body.Doc = ex.Body.Doc, body }

// ApplyExceptions adds exceptions to the policy decision and logs the decision again. It is used for exceptions that suppress violations
// which the gateway found after it had evaluated the policies.
func (ex *Exchange) ApplyExceptions(ctx context.Context, lifted []policies.Excepted) {
	d := ex.Evaluation.Verdict
	d.Excepted = slices.Concat(d.Excepted, lifted)
	ex.recordDecision(d)
	ex.logDecision(ctx, d, nil, 0)
}

func evaluationFailed(err error) error {
	if errors.Is(err, strictjson.ErrTooManyNumbers) {
		return problem.BadSyntax.New("the body contains a list of numbers that is too long for a policy to evaluate").Because(err)
	}
	return problem.PolicyUnavailable.New("the organisation's policies could not be evaluated").Because(err)
}

// logDecision writes a policy decision to the decision log.
func (ex *Exchange) logDecision(ctx context.Context, d policies.Decision, err error, took time.Duration) {
	if ex.Ports.Decisions == nil {
		return
	}
	e := decisionlog.Event{
		DecisionID: ex.DecisionID, RequestID: ex.RequestID, RequestedBy: ex.In.Peer,
		Org: ex.Caller.Org, Size: int64(len(ex.In.Body)), Input: ex.Evaluation.Input, Err: err, Duration: took,
	}
	if err == nil {
		e.Decision = &d
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		e.TraceID, e.SpanID = sc.TraceID().String(), sc.SpanID().String()
	}
	ex.Ports.Decisions.Record(e)
}

// requestApproval removes the denials from a decision if all of them can be approved and the call has an approval. Otherwise it returns the
// refusal, which may name a new request for approval.
func requestApproval(ctx context.Context, ex *Exchange, d *policies.Decision) error {
	p := forbidden(d)
	if slices.ContainsFunc(d.Deny, func(v policies.Violation) bool { return !v.Approvable }) {
		return p
	}
	lifted := ex.Ports.Approvals.Approve(ctx, ex, d.Deny, p)
	if lifted == nil {
		return p
	}
	d.Deny, d.Excepted = nil, slices.Concat(d.Excepted, lifted)
	return nil
}

// forbidden returns the refusal that lists all denials.
func forbidden(d *policies.Decision) *problem.Problem {
	p := problem.Forbidden.New("")
	texts := make([]string, len(d.Deny))
	for i, v := range d.Deny {
		texts[i] = v.Policy + ": " + v.Message
		p.Errors = append(p.Errors, JSONPath(v.Pointer)+": "+texts[i])
		p.Policies = append(p.Policies, problem.Violation{Policy: v.Policy, Message: v.Message, Field: v.Pointer})
	}
	p.Detail = strings.Join(texts, "; ")
	return p
}

// Notes implements Explainer.
func (*EvaluatePolicies) Notes(ex *Exchange, stage string) []string {
	switch {
	case stage == stageValidate:
		return unknownNotes(ex.Event)
	case stage == stageResolve && ex.Evaluation.Input != nil:
		return resolveNotes(ex.Evaluation.Input)
	case stage == stageEvaluate && ex.Evaluation.Verdict.Revision != "":
		return []string{"policies " + ex.Evaluation.Verdict.Revision}
	}
	return nil
}

// Response writes the headers for warnings and changes of the body, and makes an unused approval available again. It removes resources that
// the call may have changed from the read cache.
func (f *EvaluatePolicies) Response(ctx context.Context, ex *Exchange) error {
	writePolicyHeaders(ex.Response, &ex.Evaluation.Verdict)
	writeUnknownHeaders(ex)
	ex.Ports.Approvals.GiveBack(ctx, ex)
	if !ex.Operation.Mutates || ex.Sent == NotSent {
		return nil
	}
	if get := f.Reads[ex.Operation.ID]; get != nil {
		ex.forget(get, ex.Params)
	}
	switch row, _ := operation.Lookup(ex.Operation.ID); row.Kind { //nolint:exhaustive // lists of other kinds are not cached
	case operation.KindTemplate:
		ex.forget(f.Templates, nil)
	case operation.KindSecret:
		ex.forget(f.Secrets, nil)
	}
	return nil
}

// writePolicyHeaders adds the headers for the policies' warnings and changes.
func writePolicyHeaders(a *Response, d *policies.Decision) {
	for _, v := range d.Warn {
		a.Header.Add(HeaderWarning, headerText(v.Policy+": "+v.Message))
	}
	for _, m := range d.Mutate {
		a.Header.Add(HeaderMutation, headerText(m.Policy+": "+m.Pointer))
	}
}

// appendUnique appends s to list unless list contains it.
func appendUnique(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// policyNames lists the policies of violations without duplicates.
func policyNames(vs []policies.Violation) []string {
	var out []string
	for _, v := range vs {
		out = appendUnique(out, v.Policy)
	}
	return out
}

// JSONPath converts a JSON Pointer to the notation of the platform's errors, such as "$.gpu.id".
func JSONPath(pointer string) string {
	return strings.Join(append([]string{"$"}, slices.Collect(jsontext.Pointer(pointer).Tokens())...), ".")
}

// headerText returns s as printable ASCII, truncated for use in a header.
func headerText(s string) string {
	const most = 200
	var b strings.Builder
	for _, r := range s {
		if b.Len() == most {
			break
		}
		if r < ' ' || r > '~' {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}
