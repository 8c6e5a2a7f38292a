package legacy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// EndpointNote returns the stored EndpointNote of an endpoint, or the zero value.
func (s *Session) EndpointNote(ctx context.Context, id string) translate.EndpointNote {
	note, _, _ := translate.LoadNote[translate.EndpointNote](ctx, s.Client, s.Key(translate.KindEndpoint, id))
	return note
}

// EndpointNotes returns the stored EndpointNote of each listed endpoint, by endpoint id. The map is never nil. For an endpoint with a
// single GPU type and no EndpointNote, it stores the type in a new one, because billing needs the type after the deletion of the endpoint.
func (s *Session) EndpointNotes(ctx context.Context, listed []any) map[string]translate.EndpointNote {
	return notesOf(ctx, s, translate.KindEndpoint, listed, func(body any) (translate.EndpointNote, bool) {
		note := translate.EndpointNote{BilledType: s.billedType(ctx, v2.EndpointOf(body))}
		return note, note.BilledType != ""
	})
}

// notesOf returns the stored notes of listed resources, by id. It stores a new note for each resource that has none and for which fresh
// returns one.
func notesOf[T any](ctx context.Context, s *Session, kind string, listed []any, fresh func(body any) (note T, ok bool)) map[string]T {
	notes, err := translate.FindNotes[T](ctx, s.Client, kind, IDs(listed))
	added := make(map[string]T)
	for _, body := range listed {
		id := translate.Text(body, "id")
		if _, seen := notes[id]; seen || id == "" {
			continue
		}
		if note, ok := fresh(body); ok {
			added[id], notes[id] = note, note
		}
	}
	if err == nil {
		translate.AddNotes(ctx, s.Client, kind, added)
	}
	return notes
}

// billedType returns the GPU type to which reports assign the cost of an endpoint. It returns "" if the endpoint uses several GPU types.
func (s *Session) billedType(ctx context.Context, e v2.Endpoint) string {
	if e.IsCPU() {
		return CPUType
	}
	types, _ := s.ServerlessTypes(ctx) // without types the result is ""
	if ids := GPUTypes(e, types); len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// GPUTypes lists the GPU types in an endpoint's pools, without the excluded types. types holds the records of the serverless catalog.
func GPUTypes(e v2.Endpoint, types []any) []string {
	var ids []string
	for _, pool := range e.Pools() {
		for _, id := range InPool(types, pool) {
			if !slices.Contains(e.Excluded(), id) {
				ids = append(ids, id)
			}
		}
	}
	return translate.Unique(ids)
}

// Endpoint reads one endpoint. If the endpoint no longer exists, Endpoint also removes the stored link from the endpoint to its template.
func (s *Session) Endpoint(ctx context.Context, purpose Purpose, id string) (v2.Endpoint, error) {
	body, err := s.Read(ctx, purpose, "getEndpoint", id)
	if isGone(err) {
		s.unbind(ctx, id)
	}
	return v2.EndpointOf(body), err
}

// Endpoints lists the account's endpoints.
func (s *Session) Endpoints(ctx context.Context) ([]any, error) {
	return s.List(ctx, Purpose{Verb: "list endpoints", Noun: NounEndpoint}, "listEndpoints", "endpoints", nil)
}

// Workers lists the active workers of an endpoint.
func (s *Session) Workers(ctx context.Context, id string) ([]any, error) {
	return s.list(ctx, NounEndpoint.Purpose("list workers of"), Call("listEndpointWorkers", id, nil), "workers")
}

// Version returns the number of the endpoint's newest release, or 0 if it cannot be read.
func (s *Session) Version(ctx context.Context, id string) int64 {
	resp, err := s.Send(ctx, Call("listEndpointReleases", id, nil), translate.NoRetry)
	if err != nil || !resp.OK() {
		return 0
	}
	return translate.Whole(resp.Body, "endpointVersion")
}

// TemplateIDOf returns the id of the template that an endpoint was created from. If the template is unknown, it returns the id of the
// endpoint's virtual template.
func TemplateIDOf(endpoint string, note translate.EndpointNote) string {
	if note.TemplateID != "" {
		return note.TemplateID
	}
	return virtualPrefix + endpoint
}

// unbind removes the stored link from an endpoint to its template.
func (s *Session) unbind(ctx context.Context, endpoint string) {
	if note := s.EndpointNote(ctx, endpoint); note.TemplateID != "" {
		note.TemplateID = ""
		translate.SaveNote(ctx, s.Client, s.Key(translate.KindEndpoint, endpoint), note)
	}
}

// DeleteEndpoint deletes an endpoint. If v2 refuses because the endpoint has workers, DeleteEndpoint first sets the number of workers to 0.
// v2 also deletes a template that is bound to the endpoint. The legacy APIs did not do so, and DeleteEndpoint therefore recreates the
// template and keeps its old id valid.
func (s *Session) DeleteEndpoint(ctx context.Context, id string) error {
	purpose := NounEndpoint.Purpose("delete")
	note := s.EndpointNote(ctx, id)
	template := s.ownTemplate(ctx, note.TemplateID)
	err := s.Remove(ctx, purpose, "deleteEndpoint", id)
	if forWorkers(err) {
		none := v2.NewEndpoint()
		none.SetWorkersMin(0)
		none.SetWorkersMax(0)
		if _, err := s.Change(ctx, purpose, Call("updateEndpoint", id, none.Members)); err != nil {
			return err
		}
		err = s.Remove(ctx, purpose, "deleteEndpoint", id)
	}
	if isGone(err) {
		s.unbind(ctx, id)
	}
	if err != nil {
		return err
	}
	if key := s.Key(translate.KindEndpoint, id); note.BilledType != "" {
		translate.SaveNote(ctx, s.Client, key, translate.EndpointNote{BilledType: note.BilledType})
	} else {
		translate.DropNote(ctx, s.Client, key)
	}
	if !template.Empty() {
		s.restoreTemplate(ctx, note.TemplateID, template)
	}
	return nil
}

// forWorkers reports whether err is a refusal because of the endpoint's workers.
func forWorkers(err error) bool {
	r, ok := errors.AsType[*RefusedError](err)
	return ok && r.Response != nil && (r.Response.Status == http.StatusBadRequest || r.Response.Status == http.StatusConflict) &&
		strings.Contains(strings.ToLower(r.Response.Detail()), "worker")
}

// ownTemplate reads a template of the account. The result is empty if the account does not own the template or the template cannot be read.
func (s *Session) ownTemplate(ctx context.Context, id string) v2.Template {
	if id == "" || IsVirtual(id) {
		return v2.Template{}
	}
	own, err := s.OwnTemplates(ctx)
	if err != nil {
		return v2.Template{}
	}
	return v2.TemplateOf(translate.ByID(own, s.ResolveTemplate(ctx, id)))
}

// restoreTemplate recreates a template that was deleted with its endpoint, and keeps its old id valid. Failures are
// warnings, because the endpoint has been deleted.
func (s *Session) restoreTemplate(ctx context.Context, id string, t v2.Template) {
	if _, err := s.Read(ctx, NounTemplate.Purpose("get"), "getTemplate", t.ID()); !IsMissing(err) {
		return
	}
	resp, err := s.Send(ctx, Call("createTemplate", "", t.Copy().Members), translate.NoRetry)
	if err != nil || !resp.OK() || translate.Text(resp.Body, "id") == "" {
		s.Warn("templateId", "template "+id+" was deleted with its endpoint")
		return
	}
	note := s.TemplateNote(ctx, id)
	note.Alias = translate.Text(resp.Body, "id")
	translate.SaveNote(ctx, s.Client, s.Key(translate.KindTemplate, id), note)
}
