package filter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Authorize asks the organisation's policies. No verdict is a refusal. What
// they want changed in the body is changed, held against the schema, resolved
// and judged again, until they want nothing more.
type Authorize struct {
	Engine  *policies.Engine
	Resolve *Resolve
	// Changes tells which organisations have policies that may change bodies.
	Changes map[string]bool
}

// Headers that tell the caller what policies had to say: what those in mode
// warn would have refused, and what was changed in the body.
const (
	HeaderWarning  = "X-Tollgate-Warning"
	HeaderMutation = "X-Tollgate-Mutation"
)

// maxRounds bounds how often policies may change a body.
const maxRounds = 3

// Name implements Filter.
func (*Authorize) Name() string { return "authorize" }

// Request refuses with 403, naming every policy that denied, and with 503 when
// the policies gave no verdict. When it lets the call pass, ex.Doc is the body
// that was judged, with what its template supplied.
func (f *Authorize) Request(ctx context.Context, ex *Exchange) error {
	began := f.Resolve.Recorder.Now()
	d, err := f.settled(ctx, ex)
	if ex.Answer != nil {
		return nil // what a policy wrote into the body does not exist
	}
	f.record(ctx, ex, d, err, f.Resolve.Recorder.Now().Sub(began))
	if err != nil {
		return err
	}
	ex.Verdict = d
	e := ex.Event
	e.PolicyRevision = d.Revision
	e.Denied, e.Warned, e.Shadowed = names(d.Deny), names(d.Warn), names(d.Shadow)
	for _, x := range d.Excepted {
		e.Excepted = with(e.Excepted, x.Exception)
	}
	for _, m := range d.Mutate {
		e.Changed = with(e.Changed, m.Policy+": "+m.Pointer)
	}
	if len(d.Deny) > 0 {
		return forbidden(&d)
	}
	if err := pin(ex); err != nil {
		return err
	}
	return whole(ex)
}

// settled asks until no policy wants the body changed any more. The decision it
// returns was made on ex.Input as it then is; its Mutate lists what was done on
// the way.
func (f *Authorize) settled(ctx context.Context, ex *Exchange) (policies.Decision, error) {
	given := ex.Doc
	var done []policies.Mutation
	revision := ""
	for range maxRounds + 1 {
		d, err := f.ask(ctx, ex)
		if err != nil {
			return d, err
		}
		if len(done) > 0 && d.Revision != revision {
			// Other policies than those that changed it: they start from what
			// the caller sent.
			done = nil
			if err := f.change(ctx, ex, given); err != nil || ex.Answer != nil {
				return d, err
			}
			continue
		}
		revision = d.Revision
		if len(d.Mutate) == 0 {
			d.Mutate = done
			return d, nil
		}
		doc, err := policies.Apply(ex.Doc, d.Mutate)
		if err != nil {
			return d, noVerdict(err)
		}
		done = append(done, d.Mutate...)
		if err := f.change(ctx, ex, doc); err != nil || ex.Answer != nil {
			return d, err
		}
	}
	return policies.Decision{}, noVerdict(fmt.Errorf("policies still change the body after %d rounds", maxRounds))
}

// change gives the exchange another body, which is held against the operation
// and resolved like the caller's own.
func (f *Authorize) change(ctx context.Context, ex *Exchange, doc any) error {
	ex.Doc, ex.HasDoc = doc, doc != nil
	if err := (Validate{}).Request(ctx, ex); err != nil {
		p := problemOf(err)
		out := problem.PolicyUnavailable.New("the body as the organisation's policies changed it is not valid: " + p.Detail).Because(fmt.Errorf("%w: %s", err, strings.Join(p.Errors, "; ")))
		out.Errors = p.Errors
		return out
	}
	return f.Resolve.Request(ctx, ex)
}

// ask makes one decision. Whether a field is absent, and its default to be set
// by a policy, is seen on the body as it is sent; everything else is judged on
// the body as it works, with the platform's defaults.
func (f *Authorize) ask(ctx context.Context, ex *Exchange) (policies.Decision, error) {
	row, _ := operation.Of(ex.Operation.ID)
	twice := row.Verb == operation.VerbCreate && f.Changes[ex.Caller.Org]
	for {
		var sent policies.Decision
		var err error
		if twice {
			in := *ex.Input
			in.Request.Body = named(ex, ex.Doc)
			if sent, err = f.Engine.Decide(ctx, ex.Caller.Org, &in); err != nil {
				return sent, noVerdict(err)
			}
			if len(sent.Mutate) > 0 {
				return sent, nil
			}
		}
		d, err := f.Engine.Decide(ctx, ex.Caller.Org, ex.Input)
		if err != nil {
			return d, noVerdict(err)
		}
		if !twice || d.Revision == sent.Revision {
			return d, nil
		}
	}
}

func noVerdict(err error) error {
	return problem.PolicyUnavailable.New("the organisation's policies gave no verdict").Because(err)
}

// record writes the decision to the log.
func (f *Authorize) record(ctx context.Context, ex *Exchange, d policies.Decision, err error, took time.Duration) {
	if ex.Ports.Decisions == nil {
		return
	}
	e := decisionlog.Event{
		DecisionID: ex.DecisionID, RequestID: ex.RequestID, RequestedBy: ex.In.Peer,
		Org: ex.Caller.Org, Size: int64(len(ex.In.Body)), Input: ex.Input, Err: err, Took: took,
	}
	if err == nil {
		e.Decision = &d
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		e.TraceID, e.SpanID = sc.TraceID().String(), sc.SpanID().String()
	}
	ex.Ports.Decisions.Record(e)
}

// forbidden is the refusal that lists every denial.
func forbidden(d *policies.Decision) error {
	p := problem.Forbidden.New("")
	texts := make([]string, len(d.Deny))
	for i, v := range d.Deny {
		texts[i] = v.Policy + ": " + v.Message
		p.Errors = append(p.Errors, Location(v.Pointer)+": "+texts[i])
		p.Policies = append(p.Policies, problem.Violation{Policy: v.Policy, Message: v.Message, Field: v.Pointer})
	}
	p.Detail = strings.Join(texts, "; ")
	return p
}

// Notes implements Noter.
func (f *Authorize) Notes(ex *Exchange, stage string) []string {
	if stage != f.Name() || ex.Verdict.Revision == "" {
		return nil
	}
	return []string{"policies " + ex.Verdict.Revision}
}

// Response tells the caller of warnings and changes.
func (*Authorize) Response(_ context.Context, ex *Exchange) error {
	tell(ex.Answer, &ex.Verdict)
	return nil
}

// tell puts what policies said besides yes and no on an answer.
func tell(a *Answer, d *policies.Decision) {
	for _, v := range d.Warn {
		a.Header.Add(HeaderWarning, headerText(v.Policy+": "+v.Message))
	}
	for _, m := range d.Mutate {
		a.Header.Add(HeaderMutation, headerText(m.Policy+": "+m.Pointer))
	}
}

// with returns list with s in it.
func with(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// names lists the policies of violations, each once.
func names(vs []policies.Violation) []string {
	var out []string
	for _, v := range vs {
		out = with(out, v.Policy)
	}
	return out
}

// Location writes a JSON Pointer the way the platform's errors do: "$.gpu.id".
func Location(pointer string) string {
	if pointer == "" {
		return "$"
	}
	r := strings.NewReplacer("~1", "/", "~0", "~")
	var b strings.Builder
	b.WriteByte('$')
	for seg := range strings.SplitSeq(pointer[1:], "/") {
		b.WriteByte('.')
		b.WriteString(r.Replace(seg))
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
