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

// HeaderLabels gives the purpose of a resource: a list of name=value, which
// the ledger keeps with the resource and the platform is not sent.
const HeaderLabels = "X-Tollgate-Labels"

// Labels reads the labels of a new resource that counts. On other calls they mean nothing. It removes the gateway's own labels from
// responses.
type Labels struct{}

// Name implements Filter.
func (Labels) Name() string { return "labels" }

// Request refuses with 422 labels that the caller may not set, and calls without those
// that it must.
func (Labels) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if row.Verb != operation.VerbCreate || !ledger.IsCounted(row.Kind) {
		return nil
	}
	rules := ex.Tenant.labels(ex.Caller)
	given := strings.Join(ex.In.Header.Values(HeaderLabels), ",")
	labels, faults := ledger.ReadLabels(HeaderLabels, given+","+ex.Caller.Labels, rules)
	faults = append(faults, bound(ex.Caller, given)...)
	if len(faults) > 0 {
		p := problem.Invalid.New("the labels in " + HeaderLabels + " cannot be set")
		p.Errors = faults
		return p
	}
	ex.Body.Labels, ex.Event.Labels = labels, string(labels)
	return nil
}

// memoryFor returns a fault for each label in a header that the caller's token or certificate
// alone sets, even one that it does not have.
func bound(c *identity.Caller, given string) []string {
	if len(c.CredentialLabels) == 0 {
		return nil
	}
	var faults []string
	for pair := range strings.SplitSeq(given, ",") {
		name, _, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if slices.Contains(c.CredentialLabels, name) {
			faults = append(faults, HeaderLabels+"."+name+": is set by the caller's token or certificate alone")
		}
	}
	return faults
}

// Notes implements Noter.
func (Labels) Notes(ex *Exchange, _ string) []string {
	if ex.Body.Labels == "" {
		return nil
	}
	return []string{string(ex.Body.Labels)}
}

// labels are those that a caller may set.
func (t *Tenant) labels(c *identity.Caller) []ledger.LabelRule {
	if own, ok := t.KeyLabels[c.Key]; ok {
		return own
	}
	if k, ok := t.runtimeKey(c.Key); ok && k.Labels != nil {
		return slices.DeleteFunc(slices.Clone(t.Labels), func(r ledger.LabelRule) bool { return !slices.Contains(k.Labels, r.Name) })
	}
	return t.Labels
}
