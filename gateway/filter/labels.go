package filter

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// HeaderLabels is the request header with labels for a new resource: a comma-separated list of name=value pairs. The ledger stores the
// labels with the resource. They are not sent to the platform.
const HeaderLabels = "X-Tollgate-Labels"

// Labels parses HeaderLabels if the call creates a resource that the ledger counts, and ignores the header of other calls. In the response
// phase it removes the gateway's own labels from responses.
type Labels struct{}

// Name implements Filter.
func (Labels) Name() string { return "read labels" }

// Request returns 422 for malformed labels, for labels that the caller may not set, and for missing required labels.
func (Labels) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	if row.Verb != operation.VerbCreate || !ledger.IsCounted(row.Kind) {
		return nil
	}
	rules := ex.Tenant.labels(ex.Caller)
	given := strings.Join(ex.In.Header.Values(HeaderLabels), ",")
	labels, faults := ledger.ReadLabels(HeaderLabels, given+","+ex.Caller.Labels, rules)
	faults = append(faults, bound(ex.Caller, given)...)
	if len(faults) > 0 {
		p := problem.Invalid.New(HeaderLabels + " has labels that are malformed or not allowed, or lacks required labels")
		p.Errors = faults
		return p
	}
	ex.Body.Labels, ex.Event.Labels = labels, string(labels)
	return nil
}

// bound returns an error message for each label in the header that only the caller's token or certificate may set. This applies even if the
// token or certificate does not set the label.
func bound(c *identity.Caller, given string) []string {
	if len(c.CredentialLabels) == 0 {
		return nil
	}
	var faults []string
	for pair := range strings.SplitSeq(given, ",") {
		name, _, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if slices.Contains(c.CredentialLabels, name) {
			faults = append(faults, HeaderLabels+"."+name+": only the caller's token or certificate can set this label")
		}
	}
	return faults
}

// Notes implements Explainer.
func (Labels) Notes(ex *Exchange, _ string) []string {
	if ex.Body.Labels == "" {
		return nil
	}
	return []string{string(ex.Body.Labels)}
}

// labels returns the rules for labels that a caller may set.
func (t *Tenant) labels(c *identity.Caller) []ledger.LabelRule {
	if own, ok := t.KeyLabels[c.Key]; ok {
		return own
	}
	if k, ok := t.runtimeKey(c.Key); ok && k.Labels != nil {
		return slices.DeleteFunc(slices.Clone(t.Labels), func(r ledger.LabelRule) bool { return !slices.Contains(k.Labels, r.Name) })
	}
	return t.Labels
}
