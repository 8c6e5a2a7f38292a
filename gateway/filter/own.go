package filter

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Own keeps callers from reading and changing what others of their organisation
// have, where the organisation says so. What is kept from a caller does not exist
// for it: the call goes on with an id that nothing has in its place, so that it ends
// like any such call, to the byte. It stands before the judge, which reads what a
// call names.
type Own struct {
	// Gets maps kinds of resources to the operations that read one of them.
	Gets map[operation.Kind]*schema.Operation
	// Templates lists the account's own templates.
	Templates *schema.Operation
	Reader    *Reader
}

// GetsOf returns, for every kind of resource that has one, the operation that reads
// one of them.
func GetsOf(api *schema.API) map[operation.Kind]*schema.Operation {
	gets := make(map[operation.Kind]*schema.Operation)
	for _, row := range operation.All() {
		if get := api.Operation(row.Object); get != nil {
			gets[row.Kind] = get
		}
	}
	return gets
}

// Name implements Filter.
func (*Own) Name() string { return "own" }

// naming is an id and where it stands in a call.
type naming struct {
	operation.Reference
	id string
}

// Request puts absent ids in the place of those that are kept from the caller. While
// the ledger cannot be asked, it refuses what it cannot judge with 503, but for a
// stop, which loses nothing.
func (f *Own) Request(ctx context.Context, ex *Exchange) error {
	iso := &ex.Tenant.Isolation
	if iso.exempts(ex.Caller) {
		return nil
	}
	row, _ := operation.Of(ex.Operation.ID)
	ex.Out.Whole = ex.Out.Whole || row.List != "" && iso.Read.narrow()
	named := ex.names(row)
	if len(named) == 0 {
		return nil
	}
	owners, err := f.owners(ctx, ex, ids(named))
	if err != nil {
		if row.Does(ex.Doc) == operation.VerbStop {
			ex.Event.Cause = err
			return nil
		}
		return err
	}
	for i, n := range named {
		owner, within := owners[i], true
		if owner == (spend.Owner{}) {
			if owner, within, err = f.unrecorded(ctx, ex, n); err != nil {
				return err
			}
		}
		if n.In == operation.InPath {
			ex.owner = &owner
		}
		if within && !iso.admits(iso.reach(n.Changes), owner, ex.Caller) {
			ex.hide(n)
			ex.foreign = append(ex.foreign, fmt.Sprintf("%s %s belongs to %s, so it does not exist for this caller", n.Kind, n.id, owner))
		}
	}
	return nil
}

// names lists the ids in a call that may have to be kept from its caller.
func (ex *Exchange) names(row operation.Row) []naming {
	var named []naming
	for _, ref := range row.References() {
		note := func(id string) string {
			if id != "" {
				named = append(named, naming{ref, id})
			}
			return id
		}
		switch {
		case !ex.Tenant.Isolation.reach(ref.Changes).narrow():
		case ref.In == operation.InPath:
			note(ex.Params[ref.Name])
		case ref.In == operation.InQuery:
			for _, id := range ex.Query[ref.Name] {
				note(id)
			}
		default:
			ref.Replace(ex.Doc, note)
		}
	}
	return named
}

func ids(named []naming) []string {
	out := make([]string, len(named))
	for i, n := range named {
		out[i] = n.id
	}
	return out
}

func (*Own) owners(ctx context.Context, ex *Exchange, ids []string) ([]spend.Owner, error) {
	owners, err := ex.Ports.Ledger.Owners(ctx, ex.Caller.Org, ids)
	if err != nil {
		return nil, problem.LedgerUnavailable.New("it cannot be determined at the moment whose this is").With("Retry-After", "1").Because(err)
	}
	return owners, nil
}

// unrecorded finds the owner of what the ledger has none for. A pod may be a member
// of a cluster. A template, or what jobs run on, may be a public one: within is
// false for what is not the organisation's.
func (f *Own) unrecorded(ctx context.Context, ex *Exchange, n naming) (owner spend.Owner, within bool, err error) {
	switch {
	case n.Kind == operation.KindPod && n.In == operation.InPath:
		pod, _, err := f.Reader.Recall(ctx, ex, f.Gets[n.Kind], map[string]string{"id": n.id})
		record, _ := pod.(map[string]any)
		cluster, _ := record["cluster"].(map[string]any)
		id, _ := cluster["id"].(string)
		if err != nil || id == "" {
			return owner, true, err
		}
		owners, err := f.owners(ctx, ex, []string{id})
		if err != nil {
			return owner, true, err
		}
		return owners[0], true, nil
	case !ex.Tenant.Isolation.Unowned:
		return owner, true, nil
	case n.Kind == operation.KindTemplate:
		within, _, err = f.Reader.listed(ctx, ex, f.Templates, n.id)
		return owner, within, err
	case ex.Dialect.Runs():
		endpoint, _, err := f.Reader.Recall(ctx, ex, f.Gets[n.Kind], map[string]string{"id": n.id})
		return owner, endpoint != nil, err
	}
	return owner, true, nil
}

// hide puts an absent id in the place of one.
func (ex *Exchange) hide(n naming) {
	if ex.hidden == nil {
		ex.hidden = make(map[string]string)
	}
	other := absent(n.id)
	ex.hidden[other] = n.id
	ex.Out.Whole = true
	swap := func(id string) string {
		if id == n.id {
			return other
		}
		return id
	}
	switch n.In {
	case operation.InPath:
		ex.Params = maps.Clone(ex.Params)
		ex.Params[n.Name] = other
	case operation.InQuery:
		ex.Query = maps.Clone(ex.Query)
		ex.Query[n.Name] = slices.Clone(ex.Query[n.Name])
		for i, id := range ex.Query[n.Name] {
			ex.Query[n.Name][i] = swap(id)
		}
	case operation.InBody:
		ex.Doc = n.Replace(ex.Doc, swap)
	}
}

// absent is an id in the form of another one, which nothing has.
func absent(id string) string {
	const least = 14
	return strings.ToLower(rand.Text())[:min(26, max(least, len(id)))]
}

// Response leaves out of a list what is kept from the caller, and says the ids that
// the caller did where an answer repeats those in their place.
func (f *Own) Response(ctx context.Context, ex *Exchange) error {
	a := ex.Answer
	for other, id := range ex.hidden {
		if quoted, err := strictjson.Append(nil, id); err == nil && bytes.Contains(a.Body, []byte(other)) {
			a.Body = bytes.ReplaceAll(a.Body, []byte(other), quoted[1:len(quoted)-1])
			a.Header.Del("Content-Length")
		}
	}
	iso := &ex.Tenant.Isolation
	row, _ := operation.Of(ex.Operation.ID)
	if row.List == "" || !iso.Read.narrow() || iso.exempts(ex.Caller) || !a.Relayed || a.Status >= 300 || len(ex.names(row)) > 0 {
		return nil // what a query names was judged already
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	answer, _ := doc.(map[string]any)
	list, ok := answer[row.List].([]any)
	if err != nil || !ok {
		return problem.UpstreamFailed.New("the platform's list cannot be read").Because(err)
	}
	records := make([]map[string]any, len(list))
	named := make([]string, len(list))
	for i := range list {
		records[i], _ = list[i].(map[string]any)
		named[i] = row.RecordOwner(records[i])
	}
	owners, err := f.owners(ctx, ex, named)
	if err != nil {
		return err
	}
	left := make([]any, 0, len(list))
	about := make(map[string]bool)
	for i, owner := range owners {
		gone := row.Kind == operation.KindBilling && owner == spend.Owner{} // whose it was is not known any more
		if !gone && iso.admits(iso.Read, owner, ex.Caller) {
			left, about[named[i]] = append(left, list[i]), true
		}
	}
	if len(left) == len(list) {
		return nil
	}
	answer[row.List] = left
	if meta, ok := answer["metadata"].(map[string]any); ok {
		recount(meta, left, len(about))
	}
	a.Header.Del("Content-Length")
	a.Body, err = strictjson.Append(nil, answer)
	return err
}

// Notes implements Noter.
func (*Own) Notes(ex *Exchange, _ string) []string { return ex.foreign }
