package v1

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
)

// virtualPrefix begins the ids of templates that only this translation knows:
// the settings of an endpoint whose template is unknown.
const virtualPrefix = "ept_"

var categories = []string{"NVIDIA", "AMD", "CPU"}

// templateCreateForm is TemplateCreateInput.
var templateCreateForm = append(form{
	{name: "category", kind: aText, fate: Mapped, enum: categories},
	{name: "isServerless", kind: aFlag, fate: Mapped},
	{name: "name", kind: aText, fate: Mapped, required: true},
	{name: "imageName", kind: aText, fate: Mapped, required: true},
}, templateFields...)

// templateUpdateForm is TemplateUpdateInput; its defaults do not apply.
var templateUpdateForm = append(form{
	{name: "name", kind: aText, fate: Mapped},
	{name: "imageName", kind: aText, fate: Mapped},
}, templateFields...)

var templateFields = form{
	{name: "containerDiskInGb", kind: aWhole, fate: Mapped},
	{name: "volumeInGb", kind: aWhole, fate: Mapped},
	{name: "volumeMountPath", kind: aText, fate: Mapped},
	{name: "ports", kind: aPortList, fate: Mapped},
	{name: "env", kind: anEnv, fate: Mapped},
	{name: "dockerEntrypoint", kind: aList, fate: Mapped},
	{name: "dockerStartCmd", kind: aList, fate: Mapped},
	{name: "containerRegistryAuthId", kind: aText, fate: Mapped, keepEmpty: true},
	{name: "isPublic", kind: aFlag, fate: Mapped},
	{name: "readme", kind: aText, fate: Emulated, keepEmpty: true},
}

// template writes a v2 template in v1's shape.
func (r *request) template(t any, note translate.TemplateNote, official bool) map[string]any {
	command := translate.CommandOf(t)
	size := translate.Whole(t, "mounts", "persistent", "size")
	if note.NoVolume {
		size = 0
	}
	return map[string]any{
		"id": translate.Text(t, "id"), "name": translate.Text(t, "name"), "category": translate.Text(t, "category"),
		"imageName": translate.Text(t, "image"), "containerDiskInGb": translate.Whole(t, "disk"),
		"volumeInGb": size, "volumeMountPath": mountPath(t),
		"ports": translate.List(translate.Texts(t, "ports")), "env": object(t, "env"),
		"dockerEntrypoint": translate.List(command.Entrypoint), "dockerStartCmd": translate.List(command.Cmd),
		"containerRegistryAuthId": translate.Text(t, "registry"),
		"isPublic":                translate.Flag(t, "public"), "isServerless": translate.Flag(t, "serverless"),
		"is" + r.api.cfg.Brand: official,
		"readme":               note.Readme, "earned": 0, "runtimeInMin": 0,
	}
}

// virtualTemplate shows an endpoint's settings as a template.
func (r *request) virtualTemplate(endpoint any) map[string]any {
	t := map[string]any{"serverless": true, "category": categories[0]}
	if len(translate.Items(endpoint, "cpu")) > 0 {
		t["category"] = "CPU"
	}
	for _, name := range [...]string{"name", "image", "args", "entrypoint", "cmd", "disk", "ports", "env", "registry"} {
		t[name] = translate.At(endpoint, name)
	}
	t["id"] = virtualPrefix + translate.Text(endpoint, "id")
	return r.template(t, translate.TemplateNote{}, false)
}

// virtualSource reads the endpoint behind a virtual template id; isVirtual is
// false for any other id.
func (r *request) virtualSource(ctx context.Context, id string) (endpoint any, isVirtual bool, err error) {
	endpointID, isVirtual := strings.CutPrefix(id, virtualPrefix)
	if !isVirtual {
		return nil, false, nil
	}
	endpoint, err = r.read(ctx, unknown("template", id), "getEndpoint", endpointID)
	return endpoint, true, err
}

// virtualOrigin is the origin of a body made from an endpoint's settings, nil for
// one that was not.
func virtualOrigin(id string, endpoint any) *translate.Origin {
	if endpoint == nil {
		return nil
	}
	record := map[string]any{"id": id, "serverless": true, "public": false}
	settings(record, endpoint)
	return &translate.Origin{TemplateID: id, Record: record}
}

func (r *request) templateNote(ctx context.Context, id string) translate.TemplateNote {
	note, _, _ := translate.LoadNote[translate.TemplateNote](ctx, r.Dialogue, r.key(translate.KindTemplate, id))
	return note
}

// resolveTemplate follows the alias of a template that was made again.
func (r *request) resolveTemplate(ctx context.Context, id string) string {
	if alias := r.templateNote(ctx, id).Alias; alias != "" {
		return alias
	}
	return id
}

// templatesByID reads templates in v1's shape, own ones as one list, the others
// one by one. Those that cannot be read are not in the result.
func (r *request) templatesByID(ctx context.Context, wanted []string) map[string]any {
	found := map[string]any{}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(id string) bool { return strings.HasPrefix(id, virtualPrefix) })
	if len(wanted) == 0 {
		return found
	}
	var own []any
	if len(wanted) > 1 {
		own, _ = r.list(ctx, about{noun: "template"}, "listTemplates", "templates")
	}
	notes, _ := translate.FindNotes[translate.TemplateNote](ctx, r.Dialogue, translate.KindTemplate, wanted)
	var mu sync.Mutex
	r.Each(ctx, len(wanted), func(ctx context.Context, i int) {
		id, real := wanted[i], wanted[i]
		if alias := notes[id].Alias; alias != "" {
			real = alias
		}
		t := translate.ByID(own, real)
		if t == nil {
			resp, err := r.Send(ctx, byID("getTemplate", real), translate.Read)
			if err != nil || !resp.OK() || translate.Members(resp.Body) == nil {
				return
			}
			t = resp.Body
		}
		mu.Lock()
		defer mu.Unlock()
		found[id] = r.template(t, notes[id], false)
	})
	return found
}

// templateIncludes are the include flags of template reads.
type templateIncludes struct{ public, official, bound bool }

func (r *request) templateIncludes() templateIncludes {
	return templateIncludes{
		public:   r.query.flag("includePublicTemplates"),
		official: r.query.flag("include" + r.api.cfg.Brand + "Templates"),
		bound:    r.query.flag("includeEndpointBoundTemplates"),
	}
}

// maxPublic is how many templates v2 gives of one catalog slice.
const maxPublic = 100

func listTemplates(ctx context.Context, r *request) (*reply, error) {
	include := r.templateIncludes()
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	w := about{verb: "list templates", noun: "template"}
	listed, err := r.list(ctx, w, "listTemplates", "templates")
	if err != nil {
		return nil, err
	}
	notes, _ := translate.LoadNotes[translate.TemplateNote](ctx, r.Dialogue, translate.KindTemplate)
	var slicesWanted []string
	if include.public {
		slicesWanted = append(slicesWanted, "community", "verified")
	}
	if include.official {
		slicesWanted = append(slicesWanted, "official")
	}
	out := each(listed, func(t any) map[string]any { return r.template(t, notes[translate.Text(t, "id")], false) })
	seen := ids(listed)
	for _, source := range slicesWanted {
		public, err := r.publicTemplates(ctx, w, source)
		if err != nil {
			return nil, err
		}
		for _, t := range public {
			if id := translate.Text(t, "id"); !slices.Contains(seen, id) {
				seen = append(seen, id)
				out = append(out, r.template(t, notes[id], source == "official"))
			}
		}
	}
	if include.bound {
		bound, err := r.virtualTemplates(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, bound...)
	}
	return ok(out), nil
}

func (r *request) publicTemplates(ctx context.Context, w about, source string) ([]any, error) {
	call := &translate.Request{Operation: "listPublicTemplates", Query: url.Values{"source": {source}}}
	body, err := r.send(ctx, w, call, translate.Read)
	if err != nil {
		return nil, err
	}
	list := translate.Items(body, "templates")
	if len(list) >= maxPublic {
		r.Warn("templates", "only the first 100 "+source+" ones are listed")
	}
	return list, nil
}

// virtualTemplates are those of the endpoints whose template is unknown.
func (r *request) virtualTemplates(ctx context.Context) ([]any, error) {
	endpoints, err := r.list(ctx, about{verb: "list endpoints", noun: "endpoint"}, "listEndpoints", "endpoints")
	if err != nil {
		return nil, err
	}
	notes, _ := translate.FindNotes[translate.EndpointNote](ctx, r.Dialogue, translate.KindEndpoint, ids(endpoints))
	var out []any
	for _, e := range endpoints {
		if notes[translate.Text(e, "id")].TemplateID == "" {
			out = append(out, r.virtualTemplate(e))
		}
	}
	return out, nil
}

func getTemplate(ctx context.Context, r *request) (*reply, error) {
	r.templateIncludes() // they change nothing here; only their spelling is checked
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	id := r.param("templateId")
	w := about{verb: "get template", noun: "template", missing: "template not found"}
	if endpointID, isVirtual := strings.CutPrefix(id, virtualPrefix); isVirtual {
		endpoint, err := r.read(ctx, w, "getEndpoint", endpointID)
		if err != nil {
			return nil, err
		}
		return ok(r.virtualTemplate(endpoint)), nil
	}
	note := r.templateNote(ctx, id)
	t, err := r.read(ctx, w, "getTemplate", r.resolveTemplate(ctx, id))
	if err != nil {
		return nil, err
	}
	return ok(r.shownTemplate(t, id, note)), nil
}

// shownTemplate writes a template under the id the caller knows it by.
func (r *request) shownTemplate(t any, id string, note translate.TemplateNote) map[string]any {
	out := r.template(t, note, false)
	out["id"] = id
	return out
}

// deleteTemplate refuses a template that endpoints follow, as v1 did.
func deleteTemplate(ctx context.Context, r *request) (*reply, error) {
	id := r.param("templateId")
	if strings.HasPrefix(id, virtualPrefix) {
		return &reply{status: http.StatusNoContent}, nil
	}
	note := r.templateNote(ctx, id)
	if len(note.BoundEndpoints) > 0 {
		return nil, bad("template is bound to endpoint %s", note.BoundEndpoints[0])
	}
	w := about{verb: "delete template", noun: "template"}
	if err := r.remove(ctx, w, "deleteTemplate", r.resolveTemplate(ctx, id)); err != nil {
		return nil, err
	}
	translate.DropNote(ctx, r.Dialogue, r.key(translate.KindTemplate, id))
	return &reply{status: http.StatusNoContent}, nil
}
