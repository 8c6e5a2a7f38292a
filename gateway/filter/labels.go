package filter

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// HeaderLabels says for whom or what something is made: a list of name=value, which
// the ledger keeps with the resource and the platform is not sent.
const HeaderLabels = "X-Tollgate-Labels"

// Labels reads the labels of what is made and counts. On other calls they mean nothing.
type Labels struct{}

// Name implements Filter.
func (Labels) Name() string { return "labels" }

// Request refuses with 422 labels that the caller may not set, and calls without those
// that it must.
func (Labels) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if row.Verb != operation.VerbCreate || !spend.Counts(row.Kind) {
		return nil
	}
	rules := ex.Tenant.labels(ex.Caller)
	given := append(slices.Clone(ex.In.Header.Values(HeaderLabels)), ex.Caller.Labels)
	labels, faults := spend.ReadLabels(HeaderLabels, strings.Join(given, ","), rules)
	if len(faults) > 0 {
		p := problem.Invalid.New("the labels in " + HeaderLabels + " cannot be set")
		p.Errors = faults
		return p
	}
	ex.labels, ex.Event.Labels = labels, string(labels)
	return nil
}

// Notes implements Noter.
func (f Labels) Notes(ex *Exchange, stage string) []string {
	if stage != f.Name() || ex.labels == "" {
		return nil
	}
	return []string{string(ex.labels)}
}

// labels are those that a caller may set.
func (t *Tenant) labels(c *identity.Caller) []spend.LabelRule {
	if own, ok := t.KeyLabels[c.Key]; ok {
		return own
	}
	return t.Labels
}
