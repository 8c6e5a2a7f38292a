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

// EndpointNote reads the note of an endpoint.
func (s *Session) EndpointNote(ctx context.Context, id string) translate.EndpointNote {
	note, _, _ := translate.LoadNote[translate.EndpointNote](ctx, s.Client, s.Key(translate.KindEndpoint, id))
	return note
}

// EndpointNotes returns the notes of listed endpoints by id, never nil. An endpoint that
// is seen for the first time gets a note: billing asks for the GPU types of endpoints
// after they are gone.
func (s *Session) EndpointNotes(ctx context.Context, listed []any) map[string]translate.EndpointNote {
	notes, err := translate.FindNotes[translate.EndpointNote](ctx, s.Client, translate.KindEndpoint, IDs(listed))
	fresh := make(map[string]translate.EndpointNote)
	for _, body := range listed {
		e := v2.EndpointOf(body)
		if _, seen := notes[e.ID()]; seen || e.ID() == "" {
			continue
		}
		if note := (translate.EndpointNote{BilledType: s.billedType(ctx, e)}); note.BilledType != "" {
			fresh[e.ID()], notes[e.ID()] = note, note
		}
	}
	if err == nil {
		translate.AddNotes(ctx, s.Client, translate.KindEndpoint, fresh)
	}
	return notes
}

// billedType is the GPU type that an endpoint's amounts are filed under, "" when
// there are several.
func (s *Session) billedType(ctx context.Context, e v2.Endpoint) string {
	var types []any
	if !e.IsCPU() {
		types, _ = s.ServerlessTypes(ctx) // none is several
	}
	return BilledType(e, Pools(types))
}

// BilledType is the GPU type that an endpoint's amounts are filed under, "" when there
// are several. members lists the types of a pool.
func BilledType(e v2.Endpoint, members func(pool string) []string) string {
	if e.IsCPU() {
		return CPUType
	}
	if ids := GPUTypes(e, members); len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// GPUTypes lists the GPU types in an endpoint's pools, but for those it excludes.
func GPUTypes(e v2.Endpoint, members func(pool string) []string) []string {
	var ids []string
	for _, pool := range e.Pools() {
		for _, id := range members(pool) {
			if !slices.Contains(e.Excluded(), id) {
				ids = append(ids, id)
			}
		}
	}
	return translate.Unique(ids)
}

// Endpoint reads one endpoint. One that is gone is bound to no template any more.
func (s *Session) Endpoint(ctx context.Context, about Purpose, id string) (v2.Endpoint, error) {
	body, err := s.Read(ctx, about, "getEndpoint", id)
	if IsMissing(err) {
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

// Version is the number of the endpoint's newest release, 0 when it cannot be
// read.
func (s *Session) Version(ctx context.Context, id string) int64 {
	resp, err := s.Send(ctx, Call("listEndpointReleases", id, nil), translate.NoRetry)
	if err != nil || !resp.OK() {
		return 0
	}
	return translate.Whole(resp.Body, "endpointVersion")
}

// TemplateIDOf is the template that an endpoint was made from; an endpoint whose
// template is not known has a virtual one.
func TemplateIDOf(endpoint string, note translate.EndpointNote) string {
	if note.TemplateID != "" {
		return note.TemplateID
	}
	return VirtualPrefix + endpoint
}

// unbind forgets which template an endpoint was made from.
func (s *Session) unbind(ctx context.Context, endpoint string) {
	if note := s.EndpointNote(ctx, endpoint); note.TemplateID != "" {
		note.TemplateID = ""
		translate.SaveNote(ctx, s.Client, s.Key(translate.KindEndpoint, endpoint), note)
	}
}

// DeleteEndpoint deletes an endpoint; one that is refused for its workers has
// them taken away first. v2 takes a template bound to it along. The retired
// interfaces did not, so a template that is gone afterwards is made again and its
// old id kept working.
func (s *Session) DeleteEndpoint(ctx context.Context, id string) error {
	about := NounEndpoint.Purpose("delete")
	note := s.EndpointNote(ctx, id)
	template := s.ownTemplate(ctx, note.TemplateID)
	err := s.Remove(ctx, about, "deleteEndpoint", id)
	if forWorkers(err) {
		none := v2.NewEndpoint()
		none.SetWorkersMin(0)
		none.SetWorkersMax(0)
		if _, err := s.Change(ctx, about, Call("updateEndpoint", id, none.Members)); err != nil {
			return err
		}
		err = s.Remove(ctx, about, "deleteEndpoint", id)
	}
	if IsMissing(err) {
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

// forWorkers reports a refusal that is about the workers an endpoint has.
func forWorkers(err error) bool {
	r, ok := errors.AsType[*RefusedError](err)
	return ok && r.Response != nil && (r.Response.Status == http.StatusBadRequest || r.Response.Status == http.StatusConflict) &&
		strings.Contains(strings.ToLower(r.Response.Detail()), "worker")
}

// ownTemplate reads a template that the account owns, empty when it is none or
// cannot be read.
func (s *Session) ownTemplate(ctx context.Context, id string) v2.Template {
	if id == "" || IsVirtual(id) {
		return v2.Template{}
	}
	own, err := s.OwnTemplates(ctx, "list templates")
	if err != nil {
		return v2.Template{}
	}
	return v2.TemplateOf(translate.ByID(own, s.ResolveTemplate(ctx, id)))
}

// restoreTemplate makes a template again that went with its endpoint, and keeps
// its old id working. Failures are warnings: the endpoint is deleted.
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
