package filter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// EvaluatePolicies finds out whether a v2 call may be made, in three stages: the call is
// validated against the operation's description, resolved to the state it leads
// to, and authorized by the organisation's policies. When policies change its
// body, all three look at the changed body, until it stands still. Then it is
// sealed: the body judged is the body sent.
type EvaluatePolicies struct {
	Policies Policies
	// Reads maps operations to those that read their object; see ReadsOf.
	Reads map[string]*schema.Operation
	// Template and Templates read one template and the account's own, Secrets the account's secrets.
	Template, Templates, Secrets *schema.Operation
	Reader                       *Reader
	Recorder                     *telemetry.Recorder
}

// Policies is implemented by *policies.Engine.
type Policies interface {
	Decide(ctx context.Context, org string, in *policies.Input) (policies.Decision, error)
	// Readers lists the policies of an organisation that read anything at, above or
	// below a path of the input.
	Readers(org string, path ...string) []string
}

// The stages of a Judge, as users see them.
const (
	stageValidate = "validate"
	stageResolve  = "resolve"
	stageEvaluate = "authorize"
)

// Headers that tell the caller the policies' remarks: denials of policies in mode
// warn, and changes of the body.
const (
	HeaderWarning  = "X-Tollgate-Warning"
	HeaderMutation = "X-Tollgate-Mutation"
)

// maxRounds bounds how often policies may change a body.
const maxRounds = 3

// Name returns the name of the first stage; Request enters the others.
func (*EvaluatePolicies) Name() string { return stageValidate }

// Request refuses an invalid call, with 403 one that policies deny, naming each of
// them, and with 503 one without a verdict. It answers with the platform's
// own refusal when an object or a template that the call is about cannot be
// read. When it lets the call pass, ex.Doc is the body to be sent.
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
		return nil // a policy wrote an id into the body that does not exist
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
	return seal(ex)
}

// decide asks until no policy wants the body changed any more. The decision it
// returns was made on ex.Input as it then is; its Mutate lists the changes made on
// the way.
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
			// Other policies than those that changed the body: they start from the body
			// that the caller sent.
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

// replaceBody gives the exchange another body, which is validated and resolved like
// the caller's own.
func (f *EvaluatePolicies) replaceBody(ctx context.Context, ex *Exchange, doc any) error {
	ex.Body.Doc, ex.Body.HasDoc = doc, doc != nil
	if err := validate(ex); err != nil {
		p := problemOf(err)
		out := problem.PolicyUnavailable.New("the body as the organisation's policies changed it is not valid: " + p.Detail).Because(fmt.Errorf("%w: %s", err, strings.Join(p.Errors, "; ")))
		out.Errors = p.Errors
		return out
	}
	return f.resolve(ctx, ex)
}

// evaluatedWithFallbackntAnonymous makes one decision. Whether a field is absent, and its default to be set
// by a policy, is seen on the body as it is sent; everything else is judged on
// the body as it works, with the platform's defaults.
func (f *EvaluatePolicies) evaluate(ctx context.Context, ex *Exchange) (policies.Decision, error) {
	row, _ := operation.Of(ex.Operation.ID)
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
			return policies.Decision{}, problem.PriceUnavailable.New("the platform's price list cannot be read at the moment").
				With("Retry-After", "5").Because(ex.Evaluation.PriceErr)
		}
		if !twice || d.Revision == sent.Revision {
			return d, nil
		}
	}
}

// deniedOnlyByPrice reports whether all that is denied may be because there is no price list.
func (f *EvaluatePolicies) deniedOnlyByPrice(org string, denied []policies.Violation) bool {
	readers := append(f.Policies.Readers(org, "cost"), f.Policies.Readers(org, "catalog")...)
	return len(denied) > 0 && !slices.ContainsFunc(denied, func(v policies.Violation) bool { return !slices.Contains(readers, v.Policy) })
}

// missingTarget returns the problem of a run whose target does not exist, if only policies that read prices denied the run, and nil otherwise.
func (f *EvaluatePolicies) missingTarget(ctx context.Context, ex *Exchange, denied []policies.Violation) error {
	row, _ := operation.Of(ex.Operation.ID)
	if row.Kind != operation.KindJob || row.Opaque || ex.Tenant.Runs.Of(ex.Params["id"]).Known() || !f.deniedOnlyByPrice(ex.Caller.Org, denied) {
		return nil
	}
	_, err := f.Reader.OwnsTarget(ctx, ex)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Kind == problem.NotFound {
		return p
	}
	return nil
}

// recordDecision notes the policies' decision.
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

// ReplaceBody changes the body that was judged, to one that is as good.
func (ex *Exchange) ReplaceBody(body any) { ex.Body.Doc = body }

// ExtendBody makes body, which has members that the platform may not know, the body of the call. If the
// platform refuses body with 400 or 422, the previous body is sent once.
func (ex *Exchange) ExtendBody(body any) { ex.Body.beforeExtension, ex.Body.Doc = ex.Body.Doc, body }

// ApplyExceptions lets the call pass violations that were found behind the policies' decision.
func (ex *Exchange) ApplyExceptions(ctx context.Context, lifted []policies.Excepted) {
	d := ex.Evaluation.Verdict
	d.Excepted = slices.Concat(d.Excepted, lifted)
	ex.recordDecision(d)
	ex.logDecision(ctx, d, nil, 0)
}

func evaluationFailed(err error) error {
	if errors.Is(err, strictjson.ErrTooManyNumbers) {
		return problem.BadSyntax.New("a list of numbers in the input is too long: a policy reads it").Because(err)
	}
	return problem.PolicyUnavailable.New("the organisation's policies gave no verdict").Because(err)
}

// logDecision writes a decision about the call to the log.
func (ex *Exchange) logDecision(ctx context.Context, d policies.Decision, err error, took time.Duration) {
	if ex.Ports.Decisions == nil {
		return
	}
	e := decisionlog.Event{
		DecisionID: ex.DecisionID, RequestID: ex.RequestID, RequestedBy: ex.In.Peer,
		Org: ex.Caller.Org, Size: int64(len(ex.In.Body)), Input: ex.Evaluation.Input, Err: err, Took: took,
	}
	if err == nil {
		e.Decision = &d
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		e.TraceID, e.SpanID = sc.TraceID().String(), sc.SpanID().String()
	}
	ex.Ports.Decisions.Record(e)
}

// requestApproval takes the denials out of a decision if all of them can be approved and were. Otherwise it returns the refusal.
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

// forbidden is the refusal that lists every denial.
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

// Notes implements Noter.
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

// Response tells the caller of warnings and changes, gives an approval back that was
// not needed, and forgets objects that the call may have changed.
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
	switch row, _ := operation.Of(ex.Operation.ID); row.Kind { //nolint:exhaustive // no list of the others is recalled
	case operation.KindTemplate:
		ex.forget(f.Templates, nil)
	case operation.KindSecret:
		ex.forget(f.Secrets, nil)
	}
	return nil
}

// writePolicyHeaders puts the policies' warnings and changes on an answer.
func writePolicyHeaders(a *Response, d *policies.Decision) {
	for _, v := range d.Warn {
		a.Header.Add(HeaderWarning, headerText(v.Policy+": "+v.Message))
	}
	for _, m := range d.Mutate {
		a.Header.Add(HeaderMutation, headerText(m.Policy+": "+m.Pointer))
	}
}

// appendUnique returns list with s in it.
func appendUnique(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// referencesyNames lists the policies of violations, each once.
func policyNames(vs []policies.Violation) []string {
	var out []string
	for _, v := range vs {
		out = appendUnique(out, v.Policy)
	}
	return out
}

// unescape reads a segment of a JSON Pointer (RFC 6901, section 4).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// JSONPath writes a JSON Pointer the way the platform's errors do: "$.gpu.id".
func JSONPath(pointer string) string {
	if pointer == "" {
		return "$"
	}
	var b strings.Builder
	b.WriteByte('$')
	for seg := range strings.SplitSeq(pointer[1:], "/") {
		b.WriteByte('.')
		b.WriteString(unescape.Replace(seg))
	}
	return b.String()
}

// headerText makes text fit for a header: printable ASCII, bounded.
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
