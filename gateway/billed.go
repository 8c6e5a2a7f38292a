package gateway

import (
	"context"
	"encoding/json"
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
// What the legacy dialects make, they remember by themselves.
type billed struct {
	deps translate.Deps
	next filter.Observer
	late func(f func())
}

// noteTime bounds the writing of one note.
const noteTime = time.Second

// Ended implements filter.Observer. The note is written behind the answer.
func (b billed) Ended(ex *filter.Exchange) {
	b.next.Ended(ex)
	note := b.noteOf(ex)
	if note == nil {
		return
	}
	b.late(func() {
		ctx, cancel := context.WithTimeout(context.Background(), noteTime) //nolint:forbidigo // the note outlives its request, and depends on nothing of it
		defer cancel()
		if err := note(ctx); err != nil {
			b.deps.Logger.WarnContext(ctx, "translation memory not written", "error", err)
		}
	})
}

// noteOf returns what writes the note of an exchange, nil if there is none.
func (b billed) noteOf(ex *filter.Exchange) func(ctx context.Context) error {
	if ex.Dialect != route.V2 || ex.Operation == nil || ex.Input == nil || ex.Answer == nil || !ex.Answer.Relayed || ex.Answer.Status >= http.StatusMultipleChoices {
		return nil
	}
	switch ex.Operation.ID {
	case "createPod":
		if pod := v2.PodOf(ex.Answer.Object()); pod.ID() != "" {
			key := translate.Key{Account: ex.Caller.Org, Kind: translate.KindPod, ID: pod.ID()}
			return func(ctx context.Context) error { return b.add(ctx, key, legacy.FirstSight(pod)) }
		}
	case "createEndpoint", "updateEndpoint":
		endpoint := v2.EndpointOf(ex.Answer.Object())
		if kind := legacy.BilledType(endpoint, ex.Input.Catalog.Members); endpoint.ID() != "" && kind != "" {
			key := translate.Key{Account: ex.Caller.Org, Kind: translate.KindEndpoint, ID: endpoint.ID()}
			return func(ctx context.Context) error { return b.amend(ctx, key, kind) }
		}
	}
	return nil
}

// add writes a note unless there is one.
func (b billed) add(ctx context.Context, key translate.Key, note translate.PodNote) error {
	raw, err := json.Marshal(note)
	if err != nil {
		return err
	}
	_, err = b.deps.Store.Add(ctx, key, raw, translate.NoteTTL)
	return err
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
