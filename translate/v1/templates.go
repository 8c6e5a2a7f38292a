package v1

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

var categories = []string{"NVIDIA", "AMD", "CPU"}

// templateCreateForm is TemplateCreateInput of the description.
var templateCreateForm = slices.Concat(form{
	{name: "category", plain: true, enum: categories},
	{name: "isServerless", v2: "serverless", plain: true, kind: kindBoolean},
	{name: "name", required: true},
	{name: "imageName", v2: "image", required: true},
}, containerFields, templateFields)

// templateUpdateForm is TemplateUpdateInput of the description. Its defaults do not apply.
var templateUpdateForm = slices.Concat(form{{name: "name"}, {name: "imageName", v2: "image"}}, containerFields, templateFields)

var templateFields = form{
	{name: "isPublic", v2: "public", plain: true, kind: kindBoolean},
	{name: "readme", keepEmpty: true},
}

// templateInput reads the template settings that both bodies share.
func (r *request) templateInput() *legacy.TemplateInput {
	return &legacy.TemplateInput{PodInput: r.podInput(), Readme: optional[string](r.body, "readme")}
}

// containerInput reads the settings that templates and pods share.
func containerInput(in input) legacy.Container {
	return legacy.Container{
		Image: optional[string](in, "imageName"), Entrypoint: optional[[]string](in, "dockerEntrypoint"),
		Cmd:  optional[[]string](in, "dockerStartCmd"),
		Disk: optional[int64](in, "containerDiskInGb"), Ports: optional[[]string](in, "ports"), Env: optional[map[string]string](in, "env"),
		Registry: optional[string](in, "containerRegistryAuthId"),
	}
}

// template returns a template in v1's form.
func (r *request) template(ctx context.Context, t legacy.Template, official bool) map[string]any {
	command := t.Command()
	shown := map[string]any{
		"id": t.KnownAs, "name": t.Name(), "category": t.Category(),
		"imageName": t.Image(), "containerDiskInGb": t.Disk(), "volumeInGb": t.VolumeGB(), "volumeMountPath": t.MountPath(),
		"ports": translate.List(t.Ports()), "env": object(t.Env()),
		"dockerEntrypoint": translate.List(command.Entrypoint), "dockerStartCmd": translate.List(command.Cmd),
		"containerRegistryAuthId": t.Registry(), "isPublic": t.Public(), "isServerless": t.Serverless(),
		"readme": t.Note.Readme, "earned": 0, "runtimeInMin": 0,
	}
	for _, name := range r.PlatformNames(ctx, r.api.cfg.Legacy, r.brandInQuery()) {
		if _, other := shown["is"+name]; !other {
			shown["is"+name] = official
		}
	}
	return shown
}

func (r *request) templateReply(ctx context.Context, t legacy.Template, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return ok(r.template(ctx, t, false)), nil
}

// templatesByID returns templates in v1's form. It omits templates that cannot be read.
func (r *request) templatesByID(ctx context.Context, wanted []string) map[string]any {
	shown := map[string]any{}
	for id, t := range r.TemplatesByID(ctx, wanted) {
		shown[id] = r.template(ctx, t, false)
	}
	return shown
}

// templateIncludes holds the include flags of template reads.
type templateIncludes struct{ public, official, bound bool }

// templateIncludes reads the flags and stores the caller's name for the platform.
func (r *request) templateIncludes(ctx context.Context) templateIncludes {
	name := cmp.Or(r.brandInQuery(), r.api.cfg.Legacy.Name())
	r.RememberSpelling(ctx, r.api.cfg.Legacy, name)
	return templateIncludes{
		public:   r.query.flag("includePublicTemplates"),
		official: r.query.flag("include" + name + "Templates"),
		bound:    r.query.flag("includeEndpointBoundTemplates"),
	}
}

// includeTemplates matches the parameters that include the templates of a source. All but those of notBrands contain the platform's name.
var includeTemplates = regexp.MustCompile(`^include([A-Z][A-Za-z0-9]*)Templates$`)

// notBrands returns names in parameters and members of templates that are not the platform's name.
func notBrands() []string { return []string{"Public", "EndpointBound", "Serverless"} }

// brandInQuery returns the caller's name for the platform, or "" if the query does not contain a name or the operator has
// configured the name.
func (r *request) brandInQuery() string {
	if r.api.cfg.Legacy.Brand != "" {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(r.query.values)) {
		if m := includeTemplates.FindStringSubmatch(name); m != nil && !slices.Contains(notBrands(), m[1]) {
			return m[1]
		}
	}
	return ""
}

// maxPublic is the maximum number of templates that v2 returns for one source.
const maxPublic = 100

func listTemplates(ctx context.Context, r *request) (*reply, error) {
	include := r.templateIncludes(ctx)
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	listed, err := r.OwnTemplates(ctx)
	if err != nil {
		return nil, err
	}
	notes, _ := legacy.Notes[translate.TemplateNote](ctx, r.Session, translate.KindTemplate)
	var slicesWanted []string
	if include.public {
		slicesWanted = append(slicesWanted, "community", "verified")
	}
	if include.official {
		slicesWanted = append(slicesWanted, "official")
	}
	show := func(body any, official bool) map[string]any {
		t := v2.TemplateOf(body)
		return r.template(ctx, legacy.Template{Template: t, KnownAs: t.ID(), Note: notes[t.ID()]}, official)
	}
	out := each(listed, func(t any) map[string]any { return show(t, false) })
	seen := legacy.IDs(listed)
	for _, source := range slicesWanted {
		public, err := r.publicTemplates(ctx, source)
		if err != nil {
			return nil, err
		}
		for _, t := range public {
			if id := translate.Text(t, "id"); !slices.Contains(seen, id) {
				seen = append(seen, id)
				out = append(out, show(t, source == "official"))
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

func (r *request) publicTemplates(ctx context.Context, source string) ([]any, error) {
	list, err := r.PublicTemplates(ctx, source)
	if len(list) >= maxPublic {
		r.Warn("templates", "only the first 100 "+source+" templates are listed")
	}
	return list, err
}

// virtualTemplates returns the virtual templates of the endpoints whose template is unknown.
func (r *request) virtualTemplates(ctx context.Context) ([]any, error) {
	endpoints, err := r.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	notes, _ := translate.FindNotes[translate.EndpointNote](ctx, r.Client, translate.KindEndpoint, legacy.IDs(endpoints))
	var out []any
	for _, e := range endpoints {
		if note := notes[translate.Text(e, "id")]; note.TemplateID == "" {
			out = append(out, r.template(ctx, legacy.VirtualTemplate(e, note), false))
		}
	}
	return out, nil
}

func getTemplate(ctx context.Context, r *request) (*reply, error) {
	r.templateIncludes(ctx) // the flags have no effect here; their values are only validated
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	t, err := r.Template(ctx, legacy.NounTemplate.Purpose("get"), r.id)
	return r.templateReply(ctx, t, err)
}

func createTemplate(ctx context.Context, r *request) (*reply, error) {
	in, w := r.body, r.templateInput()
	w.PassThrough.Set("category", categories[0])
	w.PassThrough.Set("public", false)
	w.PassThrough.Set("serverless", false)
	w.Disk = legacy.Given(cmp.Or(in.whole("containerDiskInGb", 0), defaultDisk))
	if !in.flag("isServerless") {
		w.Ports = legacy.Given(w.Ports.Or(defaultPorts))
		if in.text("category") != "CPU" {
			w.VolumeGB = legacy.Given(w.VolumeGB.Or(defaultVolume))
		}
	}
	t, err := r.CreateTemplate(ctx, w)
	return r.templateReply(ctx, t, err)
}

// updateTemplate serves PATCH and POST .../update.
func updateTemplate(ctx context.Context, r *request) (*reply, error) {
	t, err := r.UpdateTemplate(ctx, r.id, r.templateInput())
	return r.templateReply(ctx, t, err)
}
