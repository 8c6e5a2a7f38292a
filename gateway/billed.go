package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// billed is a filter.Observer that remembers the GPU types of what callers of v2
// make: v1 bills by them after it is gone, when the platform does not tell any more.
// What the legacy dialects make, they remember by themselves. Notes are written behind
// the answer.
type billed struct {
	deps translate.Deps
	next filter.Observer
	late func(f func())
	pods *backlog[podNote]
}

// podNote is what is to be remembered of a pod.
type podNote struct {
	account, id string
	translate.PodNote
}

// noteTime bounds one writing of notes.
const noteTime = time.Second

// Ended implements filter.Observer.
func (b billed) Ended(ex *filter.Exchange) {
	b.next.Ended(ex)
	if ex.Dialect != route.V2 || ex.Operation == nil || ex.Input == nil || ex.Answer == nil || !ex.Answer.Relayed || ex.Answer.Status >= http.StatusMultipleChoices {
		return
	}
	switch ex.Operation.ID {
	case "createPod":
		pod := v2.PodOf(ex.Answer.Object())
		if pod.ID() != "" && !b.pods.add(podNote{ex.Caller.Org, pod.ID(), legacy.FirstSight(pod)}) {
			unwritten(b.deps.Logger, errors.New("too many wait"))
		}
	case "createEndpoint", "updateEndpoint":
		endpoint := v2.EndpointOf(ex.Answer.Object())
		kind := legacy.BilledType(endpoint, ex.Input.Catalog.Members)
		if endpoint.ID() == "" || kind == "" {
			return
		}
		key := translate.Key{Account: ex.Caller.Org, Kind: translate.KindEndpoint, ID: endpoint.ID()}
		b.late(func() {
			ctx, cancel := context.WithTimeout(context.Background(), noteTime) //nolint:forbidigo // the note outlives its request, and depends on nothing of it
			defer cancel()
			if err := b.amend(ctx, key, kind); err != nil {
				unwritten(b.deps.Logger, err)
			}
		})
	}
}

func unwritten(logger *slog.Logger, err error) {
	logger.Warn("translation memory not written", "error", err)
}

// writePods returns what writes notes of pods, unless there are some.
func writePods(deps translate.Deps) func(batch []podNote) {
	return func(batch []podNote) {
		ctx, cancel := context.WithTimeout(context.Background(), noteTime) //nolint:forbidigo // notes outlive their requests, and depend on nothing of them
		defer cancel()
		accounts := make(map[string]map[string]json.RawMessage)
		for _, p := range batch {
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
			if err := deps.Store.AddAll(ctx, account, translate.KindPod, notes, translate.NoteTTL); err != nil {
				unwritten(deps.Logger, err)
			}
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
