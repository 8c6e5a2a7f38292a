package decisions

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
)

// Rows shows decisions to operators.
type Rows struct{ d *Decisions }

// Rows returns the operators' questions.
func (d *Decisions) Rows() Rows { return Rows{d} }

// Find implements admin.Decisions.
func (d Rows) Find(ctx context.Context, org, id string) (any, error) {
	if x, ok := d.d.History.Find(d.d.deps.Chain(), id); ok && (org == "" || x.Caller.Org == org) {
		return x, nil
	}
	if d.d.archive == nil {
		return nil, nil //nolint:nilnil // none is kept
	}
	x, err := d.d.archive.store.Find(ctx, d.orgs(org), id)
	if x == nil {
		return nil, err
	}
	return x, err
}

// List implements admin.Decisions.
func (d Rows) List(ctx context.Context, asked admin.DecisionQuery) (any, error) {
	return d.list(ctx, explain.Query(asked))
}

// Log implements admin.Decisions.
func (d Rows) Log(ctx context.Context, w io.Writer, org string, since time.Time) error {
	if d.d.deps.Config().Org(org) == nil {
		return row.ErrNoOrg
	}
	file := d.d.file
	if file == nil {
		return row.RefusedError{Status: http.StatusConflict, Reason: "this gateway writes its decisions to no file: decisions.file is not set"}
	}
	return decisionlog.Copy(ctx, file, w, org, since)
}

// orgs are the configured organisations, or the one of an id.
func (d Rows) orgs(id string) []string {
	var ids []string
	for _, o := range d.d.deps.Config().Orgs {
		if id == "" || o.ID == id {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// list returns the exchanges that are selected, of all gateways. With an error they are those of this one.
func (d Rows) list(ctx context.Context, q explain.Query) ([]explain.Summary, error) {
	own := d.d.History.List(q)
	if d.d.archive == nil {
		return own, nil
	}
	var errs []error
	var newest admin.NewestError
	lists := [][]explain.Summary{own}
	for _, org := range d.orgs(q.Org) {
		list, err := d.d.archive.list(ctx, org, q)
		lists = append(lists, list)
		if cut, isCut := errors.AsType[admin.NewestError](err); !isCut {
			errs = append(errs, err)
		} else if cut.Before.After(newest.Before) {
			newest = cut // that of another organisation would leave some out
		}
	}
	if err := errors.Join(errs...); err != nil || newest.Before.IsZero() {
		return q.Newest(lists...), err
	}
	return q.Newest(lists...), newest
}
