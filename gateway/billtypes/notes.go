package billtypes

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// Observer returns an observer that remembers the GPU types of resources that callers of v2
// make, before next, unless the ledger counts those: bills are grouped by them after the resource is gone, when the platform does not
// tell any more. The legacy dialects remember their own. Notes are written behind
// the answer.
func (t *Types) Observer(next filter.Observer) filter.Observer {
	return billed{deps: t.deps.Dialects, next: next, spawn: t.deps.Go, pods: &t.pods, counts: t.counts}
}

// billed is the observer.
type billed struct {
	deps  translate.Deps
	next  filter.Observer
	spawn func(f func())
	pods  *tasks.Batches[podNote]
	// counts reports whether the ledger has the type of a new pod.
	counts func(ex *filter.Exchange, p v2.Pod) bool
}

// counts reports whether the ledger has the type of a new pod for as long as a note: it is kept that long, and has a
// cost of the pod, without which there are no rows. Pods without a GPU have no type there.
func (t *Types) counts(ex *filter.Exchange, p v2.Pod) bool {
	rate, _ := translate.Float(p.Cost())
	return ex.Tenant.Budgets != nil && time.Duration(t.deps.History.Retention.Daily)*spend.Daily.Length() >= translate.NoteTTL && rate > 0 && p.GPU() != ""
}

// podNote is a note about a pod.
type podNote struct {
	account, id string
	translate.PodNote
	// written, if it is not nil, is closed when all notes before it are written; there is
	// no pod then.
	written chan struct{}
}

// noteTime bounds one writing of notes, noteTries is how often that is tried.
const (
	noteTime  = time.Second
	noteTries = 3
	// behind is how long notes wait for others that can be written with them.
	behind = 50 * time.Millisecond
)

// persist has something written that can be written twice, behind all answers: a store
// that is slow for a moment is asked again. It has no context: the note outlives
// requests, and depends on nothing of them.
func persist(logger *slog.Logger, write func(ctx context.Context) error) {
	var err error
	for range noteTries {
		ctx, cancel := context.WithTimeout(context.Background(), noteTime) //nolint:forbidigo // see above
		err = write(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	unwritten(logger, err)
}

// Ended implements filter.Observer.
func (b billed) Ended(ex *filter.Exchange) {
	b.next.Ended(ex)
	if ex.Dialect != route.V2 || ex.Operation == nil || ex.Judged.Input == nil || ex.Answer == nil || !ex.Answer.Relayed || ex.Answer.Status >= http.StatusMultipleChoices {
		return
	}
	switch ex.Operation.ID {
	case "createPod":
		pod := v2.PodOf(ex.Answer.Object())
		if pod.ID() == "" || b.counts(ex, pod) {
			return
		}
		if !b.pods.Add(podNote{account: ex.Caller.Org, id: pod.ID(), PodNote: legacy.FirstSight(pod)}) {
			unwritten(b.deps.Logger, errors.New("too many wait"))
		}
	case "createEndpoint", "updateEndpoint":
		endpoint := v2.EndpointOf(ex.Answer.Object())
		kind := legacy.BilledType(endpoint, ex.Judged.Input.Catalog.Members)
		if endpoint.ID() == "" || kind == "" {
			return
		}
		key := translate.Key{Account: ex.Caller.Org, Kind: translate.KindEndpoint, ID: endpoint.ID()}
		b.spawn(func() {
			persist(b.deps.Logger, func(ctx context.Context) error { return b.amend(ctx, key, kind) })
		})
	}
}

func unwritten(logger *slog.Logger, err error) {
	logger.Warn("translation memory not written", "error", err)
}

// writePods returns a function that writes notes of pods, unless there are some.
func writePods(deps translate.Deps) func(batch []podNote) {
	return func(batch []podNote) {
		accounts := make(map[string]map[string]json.RawMessage)
		for _, p := range batch {
			if p.written != nil {
				defer close(p.written)
				continue
			}
			raw, err := json.Marshal(p.PodNote)
			if err != nil {
				unwritten(deps.Logger, err)
				continue
			}
			if accounts[p.account] == nil {
				accounts[p.account] = make(map[string]json.RawMessage)
			}
			accounts[p.account][p.id] = raw
		}
		for account, notes := range accounts {
			persist(deps.Logger, func(ctx context.Context) error {
				return deps.Store.AddAll(ctx, account, translate.KindPod, notes, translate.NoteTTL)
			})
		}
	}
}

// amend sets the type in the note of an endpoint, which keeps all else.
func (b billed) amend(ctx context.Context, key translate.Key, kind string) error {
	var note translate.EndpointNote
	raw, known, err := b.deps.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	if known {
		if err := json.Unmarshal(raw, &note); err != nil {
			return err
		}
	}
	if note.BilledType == kind {
		return nil
	}
	note.BilledType = kind
	if raw, err = json.Marshal(note); err != nil {
		return err
	}
	return b.deps.Store.Put(ctx, key, raw, translate.NoteTTL)
}
