package legacy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	"github.com/tollgate-dev/tollgate/translate/usage"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// Calls counts the calls of the legacy APIs and reports them to operators.
type Calls struct {
	// Recorder counts the calls.
	Recorder *usage.Recorder

	*view.Current
	store       *usage.Store
	translators translate.Deps
	api         *schema.API
	lists       *overload.Pool
	moves       map[string][]string // v2 operations by the v1 operation that they replace
}

// Deps are the dependencies of Calls. All are required except Sleep.
type Deps struct {
	// Redis stores the counts of calls. Records stores the facts that v2 does not return.
	Redis, Records redis.Cmdable
	Logger         *slog.Logger
	Meter          metric.Meter
	*view.Current
	// API describes v2.
	API *schema.API
	// Lists limits the memory of the lists that are being translated or sent. Requests beyond the limit wait.
	Lists *overload.Pool
	// Sleep and LedgerTypes are passed on to [translate.Deps].
	Sleep       func(ctx context.Context, d time.Duration) error
	LedgerTypes func(ctx context.Context, account string, ids []string, since time.Time) (map[string]string, error)
}

// New returns a Calls. It also holds the dependencies of translators that do not change with the configuration.
func New(prefix settings.Prefix, deps Deps) (*Calls, error) {
	c := &Calls{
		api: deps.API, lists: deps.Lists, moves: make(map[string][]string),
		store: usage.NewStore(deps.Redis, prefix.Usage()), Current: deps.Current,
		translators: translate.Deps{
			Now: deps.Now, Sleep: deps.Sleep, Store: NewRecords(deps.Records, prefix.Legacy()), Logger: deps.Logger, LedgerTypes: deps.LedgerTypes,
		}.WithDefaults(),
	}
	for _, op := range v1.Operations() {
		if op.V2 != "" {
			c.moves[op.ID] = []string{op.V2}
		}
	}
	var err error
	c.Recorder, err = usage.NewRecorder(usage.Deps{
		Writer: &brandWarningStore{c.store, deps.Current, deps.Logger, sync.Once{}},
		Now:    deps.Now, Logger: deps.Logger, Meter: deps.Meter,
	})
	return c, err
}

// brandWarningStore is a usage.Store that logs a warning on its first write if no name of the platform is known.
type brandWarningStore struct {
	*usage.Store
	*view.Current
	logger *slog.Logger
	warned sync.Once
}

// Write implements usage.Writer.
func (u *brandWarningStore) Write(ctx context.Context, b usage.Batch) error {
	if u.Config().Legacy.KnownName() == "" {
		u.warned.Do(func() { u.logger.WarnContext(ctx, "configuration", "warning", "legacy: "+settings.UnnamedPlatform) })
	}
	return u.Store.Write(ctx, b)
}

// Tasks returns the task that writes the counts. It outlives the listeners, so that draining requests are counted.
func (c *Calls) Tasks() []tasks.Task {
	return []tasks.Task{{Name: "legacy notes", Until: tasks.Ended, Run: c.Recorder.Run}}
}

// list returns the legacy calls of an organisation and the brownouts of the next week. An empty organisation means all of them.
func (c *Calls) list(ctx context.Context, _ adminapi.Principal, p adminapi.OptionalOrg) (none List, err error) {
	org := string(p.Org)
	// Include calls that this gateway has just recorded.
	if err := c.Recorder.Flush(ctx); err != nil {
		return none, err
	}
	calls, refused := []Call{}, c.brownouts(org)
	for _, id := range c.OrgIDs(org) {
		rows, err := c.store.Rows(ctx, id)
		if err != nil {
			return none, fmt.Errorf("legacy calls: %w", err)
		}
		slices.SortStableFunc(rows, func(a, b usage.Row) int { return cmp.Compare(b.Count, a.Count) })
		for _, r := range rows {
			var next *Brownout
			if i := slices.IndexFunc(refused, func(b Brownout) bool { return b.Org == id && b.Dialect == r.Dialect }); i >= 0 {
				next = &refused[i]
			}
			calls = append(calls, Call{
				Refused: next,
				Org:     id, Key: r.Key, Dialect: r.Dialect, Operation: r.Operation, Agent: r.Agent,
				Count: r.Count, First: r.First, Last: r.Last, Statuses: r.Statuses,
				V2: c.successors(r.RowKey), Became: r.V2, Lost: r.Lost,
			})
		}
	}
	return List{calls, refused}, nil
}

// brownouts returns the brownouts of the next week for an organisation. An empty org means all organisations.
func (c *Calls) brownouts(org string) []Brownout {
	now, out := c.Now(), []Brownout{}
	for _, o := range c.Config().Orgs {
		for _, dialect := range settings.Dialect("").Values() {
			s := NewSchedule(o.Brownouts, settings.Dialect(dialect))
			if s == nil || org != "" && o.ID != org {
				continue
			}
			for _, span := range s.Spans(now) {
				out = append(out, Brownout{Org: o.ID, Dialect: dialect, From: span.From.UTC(), Until: span.Until.UTC(), Now: !span.From.After(now)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Brownout) int { return a.From.Compare(b.From) })
	return out
}

// successors returns the v2 operations that replace the operation of a row. The result is never nil.
func (c *Calls) successors(who usage.RowKey) []string {
	next := graphql.Successors(who.Operation)
	if who.Dialect == string(route.V1) {
		next = c.moves[who.Operation]
	}
	if next == nil {
		return []string{}
	}
	return next
}
