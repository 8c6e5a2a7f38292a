package legacy

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// virtualPrefix is the prefix of the ids of virtual templates. A virtual template exists only in the translation; it
// represents the settings of an endpoint whose template is unknown.
const virtualPrefix = "ept_"

// Template is a template with its stored TemplateNote and the id that the caller uses.
type Template struct {
	v2.Template
	// KnownAs is the id that the caller uses. For a recreated template, KnownAs is the id of the original template.
	KnownAs string
	// Note holds the values that v2 does not keep. It is empty for a template from a list.
	Note translate.TemplateNote
}

// IsVirtual reports whether id is the id of a virtual template.
func IsVirtual(id string) bool { return strings.HasPrefix(id, virtualPrefix) }

// TemplateInput holds a caller's settings of a template.
type TemplateInput struct {
	PodInput
	// The following settings are stored in the template's note.
	Readme, Config, StartScript Optional[string]
	AdvancedStart               Optional[bool]
	PortsConfig                 json.RawMessage // nil keeps the current value
}

// note writes the settings that v2 does not keep to n.
func (w *TemplateInput) note(n *translate.TemplateNote) {
	n.Readme, n.Config, n.StartScript = w.Readme.Or(n.Readme), w.Config.Or(n.Config), w.StartScript.Or(n.StartScript)
	n.AdvancedStart = w.AdvancedStart.Or(n.AdvancedStart)
	if w.PortsConfig != nil {
		n.PortsConfig = w.PortsConfig
	}
}

// referencedTemplate returns the Purpose for reading a template that the caller's body refers to.
func referencedTemplate(id string) Purpose {
	return Purpose{Verb: "read template", Noun: NounTemplate, BodyID: id}
}

// TemplateNote returns the stored TemplateNote of a template, or the zero value.
func (s *Session) TemplateNote(ctx context.Context, id string) translate.TemplateNote {
	note, _, _ := translate.LoadNote[translate.TemplateNote](ctx, s.Client, s.Key(translate.KindTemplate, id))
	return note
}

// ResolveTemplate returns the current id of a template. The result differs from id if the template was recreated.
func (s *Session) ResolveTemplate(ctx context.Context, id string) string {
	return cmp.Or(s.TemplateNote(ctx, id).Alias, id)
}

// Template reads one template. A virtual template is derived from its endpoint.
func (s *Session) Template(ctx context.Context, purpose Purpose, id string) (Template, error) {
	if endpoint, ok := strings.CutPrefix(id, virtualPrefix); ok {
		body, err := s.Read(ctx, purpose, "getEndpoint", endpoint)
		if err != nil {
			return Template{}, err
		}
		return VirtualTemplate(body, s.EndpointNote(ctx, endpoint)), nil
	}
	t := Template{KnownAs: id, Note: s.TemplateNote(ctx, id)}
	body, err := s.Read(ctx, purpose, "getTemplate", t.realID())
	t.Template = v2.TemplateOf(body)
	return t, err
}

func (t Template) realID() string { return cmp.Or(t.Note.Alias, t.KnownAs) }

// VirtualTemplate returns an endpoint's settings as a template.
func VirtualTemplate(endpoint any, note translate.EndpointNote) Template {
	e := v2.EndpointOf(endpoint)
	id := virtualPrefix + e.ID()
	t := Template{Template: e.AsTemplate(id), KnownAs: id}
	if note.TemplateName != "" {
		t.SetName(note.TemplateName)
	}
	return t
}

// Origin returns the translate.Origin for a v2 request into whose body the settings of t were copied.
func (t Template) Origin() *translate.Origin {
	if !IsVirtual(t.KnownAs) {
		return &translate.Origin{TemplateID: t.KnownAs}
	}
	record := v2.NewTemplate()
	record.SetID(t.KnownAs)
	record.SetServerless(true)
	record.SetPublic(false)
	t.CopyInto(record.Container)
	return &translate.Origin{TemplateID: t.KnownAs, Record: record.Members}
}

// VolumeGB returns the volume size of pods created from the template through this gateway.
func (t Template) VolumeGB() int64 {
	if t.Note.NoVolume {
		return 0
	}
	return t.PersistentSize()
}

// MountPath returns the mount path of the volume, or the default path.
func (t Template) MountPath() string { return mountPath(t.Container) }

// OwnTemplates lists the account's templates.
func (s *Session) OwnTemplates(ctx context.Context) ([]any, error) {
	return s.List(ctx, Purpose{Verb: "list templates", Noun: NounTemplate}, "listTemplates", "templates", nil)
}

// TemplatesByID reads templates. It reads the account's own templates with one call, and each other template with a separate call. The
// result omits virtual templates and templates that cannot be read.
func (s *Session) TemplatesByID(ctx context.Context, wanted []string) map[string]Template {
	found := map[string]Template{}
	wanted = slices.DeleteFunc(slices.Clone(wanted), IsVirtual)
	if len(wanted) == 0 {
		return found
	}
	var own []any
	if len(wanted) > 1 {
		own, _ = s.OwnTemplates(ctx)
	}
	notes, _ := translate.FindNotes[translate.TemplateNote](ctx, s.Client, translate.KindTemplate, wanted)
	var mu sync.Mutex
	s.Each(ctx, len(wanted), func(ctx context.Context, i int) {
		t := Template{KnownAs: wanted[i], Note: notes[wanted[i]]}
		body := translate.Members(translate.ByID(own, t.realID()))
		if body == nil {
			var err error
			if body, err = s.Read(ctx, NounTemplate.Purpose("get"), "getTemplate", t.realID()); err != nil {
				return
			}
		}
		t.Template = v2.TemplateOf(body)
		mu.Lock()
		defer mu.Unlock()
		found[wanted[i]] = t
	})
	return found
}

// CreateTemplate creates a template.
func (s *Session) CreateTemplate(ctx context.Context, w *TemplateInput) (Template, error) {
	b := v2.NewTemplate()
	w.Name.Apply(b.SetName)
	w.WriteCreate(b.Container)
	w.PassThrough.Set("startSsh", true)
	w.PassThrough.Set("startJupyter", false) // v2 would start a notebook by default
	maps.Copy(b.Members, w.PassThrough)
	switch size := w.VolumeGB.Value(); {
	case size < 0:
		return Template{}, invalid("volumeInGb", "must not be negative")
	case size > 0 && (b.Serverless() || b.Category() == "CPU"):
		s.WarnLost("volumeInGb", s.Quirks.NoVolume)
	case size > 0:
		b.SetPersistent(s.volumeSize("volumeInGb", size), cmp.Or(w.MountPath.Value(), defaultPath))
	}
	purpose := NounTemplate.Purpose("create")
	if id := b.Registry(); id != "" {
		purpose.Noun, purpose.BodyID = NounRegistry, id
	}
	made, err := s.Create(ctx, purpose, Call("createTemplate", "", b.Members))
	if err != nil {
		return Template{}, err
	}
	t := Template{Template: v2.TemplateOf(made)}
	t.KnownAs = t.ID()
	w.note(&t.Note)
	s.rememberTemplate(ctx, &t, translate.TemplateNote{})
	return t, nil
}

// UpdateTemplate updates a template, or the endpoint of a virtual template. Settings that the input omits stay unchanged.
func (s *Session) UpdateTemplate(ctx context.Context, id string, w *TemplateInput) (Template, error) {
	purpose := NounTemplate.Purpose("update")
	if endpoint, ok := strings.CutPrefix(id, virtualPrefix); ok {
		return s.updateVirtual(ctx, purpose, endpoint, w)
	}
	t := Template{KnownAs: id, Note: s.TemplateNote(ctx, id)}
	p := patch{purpose: purpose, read: "getTemplate", update: "updateTemplate", id: t.realID()}
	now, err := s.before(ctx, &p, w.VolumeGB.IsSet() || w.MountPath.Value() != "" || w.splitCommand())
	if err != nil {
		return t, err
	}
	b := v2.NewTemplate()
	w.WriteUpdate(b.Container, v2.ContainerOf(now))
	rolls := !b.Empty()
	if name := w.Name.Value(); name != "" {
		b.SetName(name)
	}
	maps.Copy(b.Members, w.PassThrough)
	before := t.Note
	w.note(&t.Note)
	if err := s.changeVolume(w, b, v2.TemplateOf(now), &t.Note); err != nil {
		return t, err
	}
	p.noted = !reflect.DeepEqual(before, t.Note)
	after, err := s.apply(ctx, &p, b.Members, now)
	if err != nil {
		return t, err
	}
	t.Template = v2.TemplateOf(after)
	s.rememberTemplate(ctx, &t, before)
	if rolls {
		s.rollOut(ctx, &t)
	}
	return t, nil
}

// changeVolume updates the volume. v2 cannot remove the volume of a template, so changeVolume stores the removal. It applies to pods that
// are created through this gateway.
func (s *Session) changeVolume(w *TemplateInput, b, now v2.Template, note *translate.TemplateNote) error {
	size, sized := w.VolumeGB.Get()
	have, path := now.PersistentSize(), cmp.Or(w.MountPath.Value(), mountPath(now.Container))
	switch {
	case size < 0:
		return invalid("volumeInGb", "must not be negative")
	case sized && size == 0:
		if have > 0 {
			note.NoVolume = true
			s.WarnLost("volumeInGb", "the platform keeps the volume, but pods created through "+s.Quirks.Interface+" do not get a volume")
		}
		return nil
	case sized && (b.Serverless() || now.Serverless() && !b.Has("serverless")):
		s.WarnLost("volumeInGb", s.Quirks.NoVolume)
		return nil
	case sized:
		note.NoVolume = false
		size = s.volumeSize("volumeInGb", size)
	case have > 0:
		size = have
	default:
		return nil // a mount path has no effect without a volume
	}
	if size != have || path != mountPath(now.Container) {
		b.SetPersistent(size, path)
	}
	return nil
}

// updateVirtual updates the endpoint of a virtual template. It stores the template's name in the endpoint's note, because
// the endpoint keeps its own name.
func (s *Session) updateVirtual(ctx context.Context, purpose Purpose, endpoint string, w *TemplateInput) (Template, error) {
	p := patch{purpose: purpose, read: "getEndpoint", update: "updateEndpoint", id: endpoint}
	now, err := s.before(ctx, &p, w.splitCommand())
	if err != nil {
		return Template{}, err
	}
	b := v2.NewTemplate()
	w.WriteUpdate(b.Container, v2.ContainerOf(now))
	var note translate.TemplateNote
	w.note(&note)
	for field, lost := range map[string]bool{
		"isPublic": w.PassThrough["public"] == true, "readme": note.Readme != "", "volumeInGb": w.VolumeGB.Value() > 0,
	} {
		if lost {
			s.WarnLost(field, "ignored because the template of an endpoint does not support this field")
		}
	}
	known := s.EndpointNote(ctx, endpoint)
	name := cmp.Or(w.Name.Value(), known.TemplateName)
	p.noted = name != known.TemplateName
	after, err := s.apply(ctx, &p, b.Members, now)
	if err != nil {
		return Template{}, err
	}
	if p.noted {
		known.TemplateName = name
		translate.SaveNote(ctx, s.Client, s.Key(translate.KindEndpoint, endpoint), known)
	}
	return VirtualTemplate(after, known), nil
}

// rememberTemplate stores the note of a template if it differs from before.
func (s *Session) rememberTemplate(ctx context.Context, t *Template, before translate.TemplateNote) {
	if !reflect.DeepEqual(before, t.Note) {
		translate.SaveNote(ctx, s.Client, s.Key(translate.KindTemplate, t.KnownAs), t.Note)
	}
}

// BoundEndpoints lists the ids of the endpoints that were created from the template through this gateway. It returns an error if the store
// fails.
func (s *Session) BoundEndpoints(ctx context.Context, template string) ([]string, error) {
	notes, err := Notes[translate.EndpointNote](ctx, s, translate.KindEndpoint)
	var followers []string
	for _, id := range slices.Sorted(maps.Keys(notes)) {
		if notes[id].TemplateID == template {
			followers = append(followers, id)
		}
	}
	return followers, err
}

// rollOut applies an updated template to its endpoints, which followed their template in the legacy APIs. A failure is a
// warning, because the template has been updated.
func (s *Session) rollOut(ctx context.Context, t *Template) {
	followers, err := s.BoundEndpoints(ctx, t.KnownAs)
	if err != nil {
		s.Warn("template", "cannot determine the endpoints of the template; the endpoints keep their settings")
	}
	errs := make([]error, len(followers))
	s.Each(ctx, len(followers), func(ctx context.Context, i int) {
		b := v2.NewEndpoint()
		b.SetTemplateID(t.realID())
		_, errs[i] = s.Change(ctx, NounEndpoint.Purpose("update"), Call("updateEndpoint", followers[i], b.Members))
	})
	for i, id := range followers {
		switch {
		case isGone(errs[i]):
			s.unbind(ctx, id)
		case IsMissing(errs[i]): // the endpoint is hidden from the caller, and so is its ID
			s.Warn("template", "cannot apply the change to an endpoint of another caller")
		case errs[i] != nil:
			s.Warn("template", "cannot apply the change to endpoint "+id)
		}
	}
}

// DeleteTemplate deletes a template. As in the legacy APIs, it returns an error if an endpoint is bound to the template. It does nothing
// for a virtual template, because the endpoint of the template remains.
func (s *Session) DeleteTemplate(ctx context.Context, id string) error {
	if IsVirtual(id) {
		return nil
	}
	followers, _ := s.BoundEndpoints(ctx, id)
	for _, endpoint := range followers {
		if _, err := s.Endpoint(ctx, NounEndpoint.Purpose("get"), endpoint); !IsMissing(err) {
			return invalid("", "template is bound to endpoint %s", endpoint)
		} // otherwise the endpoint was deleted outside the gateway, or is hidden from the caller
	}
	if err := s.Remove(ctx, NounTemplate.Purpose("delete"), "deleteTemplate", s.ResolveTemplate(ctx, id)); err != nil {
		return err
	}
	translate.DropNote(ctx, s.Client, s.Key(translate.KindTemplate, id))
	for _, endpoint := range followers {
		s.unbind(ctx, endpoint)
	}
	return nil
}
