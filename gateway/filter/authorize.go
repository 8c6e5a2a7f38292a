package filter

import (
	"context"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
)

// Authorize asks the organisation's policies. No verdict is a refusal.
type Authorize struct {
	Engine *policies.Engine
}

// HeaderWarning carries what a policy in mode warn had to say.
const HeaderWarning = "X-Tollgate-Warning"

// Name implements Filter.
func (Authorize) Name() string { return "authorize" }

// Request refuses with 403, naming every policy that denied, and with 503 when
// the policies gave no verdict.
func (f Authorize) Request(ctx context.Context, ex *Exchange) error {
	d, err := f.Engine.Decide(ctx, ex.Caller.Org, ex.Input)
	if err != nil {
		return problem.PolicyUnavailable.New("the organisation's policies gave no verdict").Because(err)
	}
	ex.Verdict = d
	e := ex.Event
	e.PolicyRevision = d.Revision
	e.Denied, e.Warned, e.Shadowed = names(d.Deny), names(d.Warn), names(d.Shadow)
	if len(d.Deny) == 0 {
		return nil
	}
	p := problem.Forbidden.New("")
	texts := make([]string, len(d.Deny))
	for i, v := range d.Deny {
		texts[i] = v.Policy + ": " + v.Message
		p.Errors = append(p.Errors, location(v.Pointer)+": "+texts[i])
		p.Policies = append(p.Policies, problem.Violation{Policy: v.Policy, Message: v.Message, Field: v.Pointer})
	}
	p.Detail = strings.Join(texts, "; ")
	return p
}

// Response tells the caller of warnings.
func (Authorize) Response(_ context.Context, ex *Exchange) error {
	for _, v := range ex.Verdict.Warn {
		ex.Answer.Header.Add(HeaderWarning, headerText(fmt.Sprintf("%s: %s", v.Policy, v.Message)))
	}
	return nil
}

// names lists the policies of violations, each once.
func names(vs []policies.Violation) []string {
	var out []string
	for _, v := range vs {
		out = union(out, []string{v.Policy})
	}
	return out
}

// location writes a JSON Pointer the way the platform's errors do: "$.gpu.id".
func location(pointer string) string {
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
