package v1

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

func listEndpoints(ctx context.Context, r *request) (*reply, error) {
	withTemplate, withWorkers := r.query.flag("includeTemplate"), r.query.flag("includeWorkers")
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	listed, err := r.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	notes := r.EndpointNotes(ctx, listed)
	types := r.poolTypes(ctx, listed...)
	var templates map[string]any
	if withTemplate {
		var wanted []string
		for _, note := range notes {
			wanted = append(wanted, note.TemplateID)
		}
		templates = r.templatesByID(ctx, translate.Unique(wanted))
	}
	var workers map[string][]any
	if withWorkers {
		workers = r.workersOf(ctx, legacy.IDs(listed))
	}
	return ok(each(listed, func(body any) map[string]any {
		e := v2.EndpointOf(body)
		note := notes[e.ID()]
		view := endpointView{note: note, types: types, version: note.Version, workers: workers[e.ID()]}
		if withTemplate {
			view.template = r.templateFor(ctx, e, note, templates)
		}
		return r.endpoint(e, view)
	})), nil
}

// templateFor returns the template that an endpoint was created from, or the virtual one.
func (r *request) templateFor(ctx context.Context, e v2.Endpoint, note translate.EndpointNote, templates map[string]any) any {
	if template := templates[note.TemplateID]; template != nil {
		return template
	}
	return r.template(ctx, legacy.VirtualTemplate(e.Members, note), false)
}

func getEndpoint(ctx context.Context, r *request) (*reply, error) {
	withTemplate, withWorkers := r.query.flag("includeTemplate"), r.query.flag("includeWorkers")
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	e, err := r.Endpoint(ctx, legacy.NounEndpoint.Purpose("get"), r.id)
	if err != nil {
		return nil, err
	}
	note := r.EndpointNote(ctx, r.id)
	out := r.endpointNow(ctx, e, note)
	if withTemplate {
		out["template"] = r.templateFor(ctx, e, note, r.templatesByID(ctx, translate.Unique([]string{note.TemplateID})))
	}
	if withWorkers {
		if workers := r.workersOf(ctx, []string{r.id})[r.id]; workers != nil {
			out["workers"] = workers
		}
	}
	return ok(out), nil
}
