package billtypes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/account"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// The route for the GPU types of bills, which v2 does not have.
const (
	// ID is that of the route.
	ID            = "billing.types"
	billTypesPath = "/tollgate/billing/types"

	maxBillTypes = 100 // ids of one request
)

// billTypes is the answer: types by id, without the ids of which none is known.
type billTypes struct {
	Types map[string]string `json:"types"`
}

// billQuestion is a question to the route.
type billQuestion struct {
	kind operation.Kind
	ids  []string
	// from is when the bills begin.
	from time.Time
}

// Route is the route.
func Route() route.Route {
	return route.Route{ID: ID, Dialect: route.V2, Method: http.MethodGet, Pattern: billTypesPath}
}

// billQuestionOf reads the query.
func billQuestionOf(ex *filter.Exchange) (q billQuestion, err error) {
	bad := problem.BadRequest.Newf("the query takes kind (pod or endpoint), from (an RFC 3339 time), and id up to %d times", maxBillTypes)
	for name, values := range ex.Query {
		switch name {
		case "kind":
			q.kind = operation.Kind(values[0])
		case "from":
			if q.from, err = time.Parse(time.RFC3339, values[0]); err != nil {
				return q, bad
			}
		case "id":
			q.ids = translate.Unique(values)
			continue
		default:
			return q, bad
		}
		if len(values) != 1 {
			return q, bad
		}
	}
	if q.kind != operation.KindPod && q.kind != operation.KindEndpoint || q.from.IsZero() || len(q.ids) == 0 || len(q.ids) > maxBillTypes {
		return q, bad
	}
	return q, nil
}

// Types remembers GPU types, and answers the route.
type Types struct {
	deps Deps
	pods tasks.Batches[podNote]
}

// Deps are the dependencies of Types. All are required.
type Deps struct {
	// Dialects have the store of notes.
	Dialects translate.Deps
	// Go runs work behind answers.
	Go      func(f func())
	Now     func() time.Time
	Catalog *catalog.Catalog
	History *spend.History
	// Org is the configuration of an organisation, nil for none.
	Org func(id string) *settings.Org
	// Account asks the platform under the configuration in force.
	Account func() *account.Client
	API     *schema.API
	// Refused says why the policies refuse a caller's calls of an operation, whatever their content.
	Refused func(ctx context.Context, ex *filter.Exchange, op *schema.Operation) ([]string, error)
}

// New returns types that are noted behind answers.
func New(deps Deps) *Types {
	t := &Types{deps: deps}
	t.pods.Write, t.pods.Go, t.pods.Pause = writePods(deps.Dialects), deps.Go, behind
	return t
}

// Answer tells the types of resources that the caller may read: as each was noted when it
// was made, as the platform has it, or as the ledger counted it.
func (t *Types) Answer(ctx context.Context, ex *filter.Exchange) (*filter.Answer, error) {
	q, err := billQuestionOf(ex)
	if err != nil {
		return nil, err
	}
	refused, err := t.deps.Refused(ctx, ex, t.deps.API.Operation(map[operation.Kind]string{operation.KindPod: "listPodBilling", operation.KindEndpoint: "listServerlessBilling"}[q.kind]))
	if err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		return nil, problem.Forbidden.New("whoever asks for the types of what was billed must be allowed to list the bills: " + strings.Join(refused, "; "))
	}
	if q.ids, err = t.readable(ctx, ex, q.ids); err != nil {
		return nil, err
	}
	types := make(map[string]string)
	for _, source := range []func(context.Context, string, *billQuestion, map[string]string) error{t.notedTypes, t.presentTypes, t.countedTypes} {
		q.ids = slices.DeleteFunc(q.ids, func(id string) bool { return types[id] != "" })
		if len(q.ids) == 0 {
			break
		}
		if err := source(ctx, ex.Caller.Org, &q, types); err != nil {
			return nil, err
		}
	}
	return filter.AnswerJSON(billTypes{types})
}

// readable leaves out the ids of resources that the caller may not see.
func (t *Types) readable(ctx context.Context, ex *filter.Exchange, ids []string) ([]string, error) {
	if !ex.Tenant.Isolation.Applies() {
		return ids, nil
	}
	owners, err := ex.Ports.Ledger.Owners(ctx, ex.Caller.Org, ids)
	if err != nil {
		return nil, problem.LedgerUnavailable.New("it cannot be determined at the moment whose this is").With("Retry-After", "1").Because(err)
	}
	var own []string
	for i, id := range ids {
		if ex.Tenant.Isolation.Reads(ex.Caller, owners[i]) {
			own = append(own, id)
		}
	}
	return own, nil
}

// notedTypes reads the notes about them. Without the store there is no answer: amounts
// would be filed elsewhere than the next time.
func (t *Types) notedTypes(ctx context.Context, org string, q *billQuestion, types map[string]string) error {
	kind := translate.KindPod
	if q.kind == operation.KindEndpoint {
		kind = translate.KindEndpoint
	}
	if err := t.notesWritten(ctx); err != nil {
		return err
	}
	notes, err := t.deps.Dialects.Store.Find(ctx, org, kind, q.ids)
	if err != nil {
		return problem.LedgerUnavailable.New("it cannot be determined at the moment what was billed").With("Retry-After", "1").Because(err)
	}
	for i, text := range notes {
		var note struct{ GPUTypeID, BilledType string }
		if json.Unmarshal([]byte(text), &note) == nil {
			types[q.ids[i]] = cmp.Or(note.GPUTypeID, note.BilledType)
		}
	}
	return nil
}

// notesWritten waits until the notes are written of all pods that this gateway has made:
// a caller that made and deleted one a moment ago may ask for it.
func (t *Types) notesWritten(ctx context.Context) error {
	written := make(chan struct{})
	if !t.pods.Add(podNote{written: written}) {
		return nil // too many wait, and it says so
	}
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// presentTypes reads them at the platform.
func (t *Types) presentTypes(ctx context.Context, org string, q *billQuestion, types map[string]string) error {
	prices, err := t.deps.Catalog.Snapshot(ctx, org)
	if err != nil {
		return err
	}
	all, err := t.deps.Account().Resources(ctx, org, new(spend.Plan), func(k operation.Kind) bool { return k == q.kind }, prices)
	if err != nil {
		return err
	}
	for _, it := range all {
		switch {
		case !slices.Contains(q.ids, it.ID):
		case q.kind == operation.KindPod:
			types[it.ID] = legacy.FirstSight(v2.PodOf(it.Record)).GPUTypeID
		default:
			types[it.ID] = legacy.BilledType(v2.EndpointOf(it.Record), prices.Members)
		}
	}
	return nil
}

// countedTypes are those that the ledger counted of resources that are gone.
func (t *Types) countedTypes(ctx context.Context, org string, q *billQuestion, types map[string]string) error {
	counted, err := t.Counted(ctx, org, q.ids, q.from)
	maps.Copy(types, counted)
	return err
}

// Counted reads the types of resources from the ledger, which has them as long as the history of their
// days is kept: of endpoints their pool, if that has several types.
func (t *Types) Counted(ctx context.Context, org string, ids []string, since time.Time) (map[string]string, error) {
	history, now := t.deps.History, t.deps.Now()
	to := spend.Daily.Start(now).AddDate(0, 0, 1)
	from := spend.Daily.Start(since)
	if kept := to.AddDate(0, 0, 1-history.Retention.Daily); from.Before(kept) {
		from = kept
	}
	if !from.Before(to) {
		return nil, nil
	}
	if o := t.deps.Org(org); o != nil && tenants.Budgeted(o) { // else there is what was counted while it was
		if err := history.Roll(ctx, org); err != nil {
			return nil, fmt.Errorf("types of what was billed: %w", err)
		}
	}
	rows, err := history.Ask(ctx, org, &spend.Query{
		From: from, To: to, Bucket: spend.Total, By: []spend.Dimension{spend.ByResource}, Where: map[spend.Dimension][]string{spend.ByResource: ids},
	}, now)
	if err != nil {
		return nil, fmt.Errorf("types of what was billed: %w", err)
	}
	var prices *catalog.Snapshot // without a list pools keep their names
	if snapshot, err := t.deps.Catalog.Snapshot(ctx, org); err == nil {
		prices = snapshot
	}
	types := make(map[string]string)
	for _, r := range rows {
		types[r.Item.Resource] = r.Item.GPU
		if members := prices.Members(r.Item.GPU); len(members) == 1 {
			types[r.Item.Resource] = members[0]
		}
	}
	return types, nil
}
