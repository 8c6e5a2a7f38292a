package v1

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

func listEndpoints(ctx context.Context, r *request) (*reply, error) {
	withTemplate, withWorkers := r.query.flag("includeTemplate"), r.query.flag("includeWorkers")
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	listed, err := r.list(ctx, about{verb: "list endpoints", noun: "endpoint"}, "listEndpoints", "endpoints")
	if err != nil {
		return nil, err
	}
	notes, _ := translate.FindNotes[translate.EndpointNote](ctx, r.Dialogue, translate.KindEndpoint, ids(listed))
	types := r.poolCards(ctx, listed...)
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
		workers = r.workersOf(ctx, ids(listed))
	}
	return ok(each(listed, func(e any) map[string]any {
		id := translate.Text(e, "id")
		note := notes[id]
		view := endpointView{note: note, types: types, version: note.Version, workers: workers[id]}
		if withTemplate {
			view.template = r.templateFor(e, note, templates)
		}
		return r.endpoint(e, view)
	})), nil
}

// templateFor is an endpoint's template: the one it was made from, or the
// virtual one.
func (r *request) templateFor(e any, note translate.EndpointNote, templates map[string]any) any {
	if template := templates[note.TemplateID]; template != nil {
		return template
	}
	return r.virtualTemplate(e)
}

func getEndpoint(ctx context.Context, r *request) (*reply, error) {
	withTemplate, withWorkers := r.query.flag("includeTemplate"), r.query.flag("includeWorkers")
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	id := r.param("endpointId")
	e, err := r.read(ctx, about{verb: "get endpoint", noun: "endpoint"}, "getEndpoint", id)
	if err != nil {
		return nil, err
	}
	note := r.endpointNote(ctx, id)
	out := r.endpointNow(ctx, e, note)
	if withTemplate {
		out["template"] = r.templateFor(e, note, r.templatesByID(ctx, translate.Unique([]string{note.TemplateID})))
	}
	if workers := r.workersIf(ctx, withWorkers, id); workers != nil {
		out["workers"] = workers
	}
	return ok(out), nil
}

func (r *request) workersIf(ctx context.Context, wanted bool, id string) []any {
	if !wanted {
		return nil
	}
	return r.workersOf(ctx, []string{id})[id]
}

// deleteEndpoint removes an endpoint. v2 takes a template bound to it along; v1
// did not, so a real template that is gone afterwards is made again and its old
// id kept working.
func deleteEndpoint(ctx context.Context, r *request) (*reply, error) {
	id := r.param("endpointId")
	w := about{verb: "delete endpoint", noun: "endpoint"}
	note := r.endpointNote(ctx, id)
	template := r.ownTemplate(ctx, note.TemplateID)
	err := r.remove(ctx, w, "deleteEndpoint", id)
	if f, isFault := errors.AsType[*fault](err); isFault && f.status == http.StatusBadRequest && aboutWorkers(f) {
		down := map[string]any{"workers": map[string]any{"min": translate.Int(0), "max": translate.Int(0)}}
		if _, err := r.send(ctx, w, with(byID("updateEndpoint", id), down), translate.Change); err != nil {
			return nil, err
		}
		err = r.remove(ctx, w, "deleteEndpoint", id)
	}
	if err != nil {
		return nil, err
	}
	r.unbind(ctx, note.TemplateID, id)
	translate.DropNote(ctx, r.Dialogue, r.key(translate.KindEndpoint, id))
	if template != nil {
		r.restoreTemplate(ctx, note.TemplateID, template)
	}
	return &reply{status: http.StatusNoContent}, nil
}

func aboutWorkers(f *fault) bool {
	return strings.Contains(strings.ToLower(f.text+" "+f.detail), "worker")
}

// ownTemplate reads a template the account owns, nil when it is none or cannot
// be read.
func (r *request) ownTemplate(ctx context.Context, id string) any {
	if id == "" || strings.HasPrefix(id, virtualPrefix) {
		return nil
	}
	own, err := r.list(ctx, about{noun: "template"}, "listTemplates", "templates")
	if err != nil {
		return nil
	}
	return translate.ByID(own, r.resolveTemplate(ctx, id))
}

// restoreTemplate makes a template again when it went with its endpoint, and
// keeps its old id working. Failures are warnings: the delete itself is done.
func (r *request) restoreTemplate(ctx context.Context, id string, template any) {
	resp, err := r.Send(ctx, byID("getTemplate", translate.Text(template, "id")), translate.Read)
	if err != nil || resp.Status != http.StatusNotFound {
		return
	}
	body := map[string]any{}
	settings(body, template)
	for _, name := range [...]string{"name", "serverless", "public", "category", "startSsh", "startJupyter", "mounts", "allowedCudaVersions"} {
		if value := translate.At(template, name); value != nil {
			body[name] = value
		}
	}
	resp, err = r.Send(ctx, &translate.Request{Operation: "createTemplate", Body: body}, translate.Once)
	if err != nil || !resp.OK() {
		r.Warn("templateId", "template "+id+" was deleted with its endpoint")
		return
	}
	note := r.templateNote(ctx, id)
	note.Alias = translate.Text(resp.Body, "id")
	translate.SaveNote(ctx, r.Dialogue, r.key(translate.KindTemplate, id), note)
}

// bind remembers that an endpoint follows a template, and writes the endpoint's
// note.
func (r *request) bind(ctx context.Context, templateID, endpointID string, note *translate.EndpointNote) {
	note.TemplateID = templateID
	translate.SaveNote(ctx, r.Dialogue, r.key(translate.KindEndpoint, endpointID), *note)
	if templateID == "" || strings.HasPrefix(templateID, virtualPrefix) {
		return
	}
	template := r.templateNote(ctx, templateID)
	if !slices.Contains(template.BoundEndpoints, endpointID) {
		template.BoundEndpoints = append(template.BoundEndpoints, endpointID)
		translate.SaveNote(ctx, r.Dialogue, r.key(translate.KindTemplate, templateID), template)
	}
}

func (r *request) unbind(ctx context.Context, templateID, endpointID string) {
	if templateID == "" {
		return
	}
	template := r.templateNote(ctx, templateID)
	if i := slices.Index(template.BoundEndpoints, endpointID); i >= 0 {
		template.BoundEndpoints = slices.Delete(template.BoundEndpoints, i, i+1)
		translate.SaveNote(ctx, r.Dialogue, r.key(translate.KindTemplate, templateID), template)
	}
}
