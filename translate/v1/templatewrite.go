package v1

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
)

func createTemplate(ctx context.Context, r *request) (*reply, error) {
	in := r.body
	serverless := in.flag("isServerless")
	body := map[string]any{
		"name": in.text("name"), "image": in.text("imageName"),
		"category": in.textOr("category", categories[0]),
		"disk":     translate.Int(cmp.Or(in.whole("containerDiskInGb", 0), defaultDisk)),
		"public":   in.flag("isPublic"), "serverless": serverless,
		// v2 starts both unless told otherwise; v1 started no notebook by itself.
		"startSsh": true, "startJupyter": false,
	}
	r.templateVolume(body, serverless)
	if in.has("ports") {
		body["ports"] = translate.List(in.texts("ports"))
	} else if !serverless {
		body["ports"] = translate.List(defaultPorts)
	}
	if vars := in.env(); len(vars) > 0 {
		body["env"] = translate.EnvObject(vars)
	}
	command := translate.Command{Entrypoint: in.texts("dockerEntrypoint"), Cmd: in.texts("dockerStartCmd")}
	if args := command.Args(); args != "" {
		body["args"] = args
	}
	w := about{verb: "create template", noun: "template"}
	if id := in.text("containerRegistryAuthId"); id != "" {
		body["registry"] = id
		w = unknown("container registry auth", id)
	}
	t, err := r.create(ctx, creation{
		about: w, call: &translate.Request{Operation: "createTemplate", Body: body},
		list: "listTemplates", member: "templates", kind: "template",
		same: func(listed any) bool {
			return translate.Text(listed, "name") == body["name"] && translate.Text(listed, "image") == body["image"]
		},
	})
	if err != nil {
		return nil, err
	}
	note := translate.TemplateNote{Readme: in.text("readme")}
	if note.Readme != "" {
		translate.SaveNote(ctx, r.Dialogue, r.key(translate.KindTemplate, translate.Text(t, "id")), note)
	}
	return ok(r.template(t, note, false)), nil
}

// templateVolume adds the volume of a pod template; endpoints and CPU pods have
// none.
func (r *request) templateVolume(body map[string]any, serverless bool) {
	in := r.body
	size := in.whole("volumeInGb", defaultVolume)
	if serverless || body["category"] == "CPU" {
		if in.has("volumeInGb") && size > 0 {
			r.Warn("volumeInGb", "such templates have no volume, ignored")
		}
		return
	}
	if size > 0 {
		body["mounts"] = persistent(r.volumeSize(size), in.textOr("volumeMountPath", defaultPath))
	}
}

// updateTemplate serves PATCH and POST .../update.
func updateTemplate(ctx context.Context, r *request) (*reply, error) {
	id := r.param("templateId")
	if endpointID, isVirtual := strings.CutPrefix(id, virtualPrefix); isVirtual {
		return r.updateVirtual(ctx, endpointID)
	}
	note := r.templateNote(ctx, id)
	saved := note
	real := r.resolveTemplate(ctx, id)
	w := about{verb: "update template", noun: "template"}
	current, err := r.read(ctx, w, "getTemplate", real)
	if err != nil {
		return nil, err
	}
	patch := r.templatePatch(current)
	r.templateMount(current, patch, &note)
	after := current
	if len(patch) > 0 {
		if after, err = r.send(ctx, w, with(byID("updateTemplate", real), patch), translate.Change); err != nil {
			return nil, err
		}
	}
	if r.body.has("readme") {
		note.Readme = r.body.text("readme")
	}
	if note.Readme != saved.Readme || note.NoVolume != saved.NoVolume {
		translate.SaveNote(ctx, r.Dialogue, r.key(translate.KindTemplate, id), note)
	}
	if r.api.cfg.TemplateRollout && rolls(patch) {
		r.rollOut(ctx, id, real)
	}
	return ok(r.shownTemplate(after, id, note)), nil
}

// templatePatch maps the fields of an update except the volume.
func (r *request) templatePatch(current any) map[string]any {
	in, patch := r.body, map[string]any{}
	for _, f := range [...]struct{ v1, v2 string }{{"name", "name"}, {"imageName", "image"}} {
		if s := in.text(f.v1); s != "" {
			patch[f.v2] = s
		}
	}
	if disk := in.whole("containerDiskInGb", 0); disk > 0 {
		patch["disk"] = translate.Int(disk)
	}
	if in.has("isPublic") {
		patch["public"] = in.flag("isPublic")
	}
	if in.has("ports") {
		patch["ports"] = translate.List(in.texts("ports"))
	}
	if in.has("env") {
		patch["env"] = translate.EnvObject(in.env())
	}
	if in.has("containerRegistryAuthId") {
		patch["registry"] = nil
		if id := in.text("containerRegistryAuthId"); id != "" {
			patch["registry"] = id
		}
	}
	replaceArgs(in, current, patch)
	return patch
}

// templateMount changes the volume. v2 cannot take a mount off a template, so
// that wish is remembered and honoured for pods made here.
func (r *request) templateMount(current any, patch map[string]any, note *translate.TemplateNote) {
	in := r.body
	have := translate.Whole(current, "mounts", "persistent", "size")
	path := in.textOr("volumeMountPath", mountPath(current))
	size, sized := in.whole("volumeInGb", 0), in.has("volumeInGb")
	switch {
	case sized && size == 0:
		if have > 0 {
			note.NoVolume = true
			r.Warn("volumeInGb", "the template keeps its volume on the platform; pods made through v1 go without")
		}
		return
	case sized && translate.Flag(current, "serverless"):
		r.Warn("volumeInGb", "serverless templates have no volume, ignored")
		return
	case sized:
		note.NoVolume = false
		size = r.volumeSize(size)
	case have > 0:
		size = have
	default:
		return // a path alone means nothing without a volume
	}
	if size != have || path != mountPath(current) {
		patch["mounts"] = persistent(size, path)
	}
}

// rolls reports whether a patch changes container settings, which endpoints take
// over.
func rolls(patch map[string]any) bool {
	for _, name := range [...]string{"image", "args", "disk", "ports", "env", "registry"} {
		if _, ok := patch[name]; ok {
			return true
		}
	}
	return false
}

// rollOut applies a changed template to the endpoints that follow it. A failure
// is a warning: the template itself was changed.
func (r *request) rollOut(ctx context.Context, id, real string) {
	notes, err := translate.LoadNotes[translate.EndpointNote](ctx, r.Dialogue, translate.KindEndpoint)
	if err != nil {
		r.Warn("template", "the endpoints made from it are not known at the moment and did not take the change over")
	}
	var followers []string
	for endpointID, note := range notes {
		if note.TemplateID == id {
			followers = append(followers, endpointID)
		}
	}
	var mu sync.Mutex
	var failed []string
	r.Each(ctx, len(followers), func(ctx context.Context, i int) {
		call := with(byID("updateEndpoint", followers[i]), map[string]any{"templateId": real})
		if resp, err := r.Send(ctx, call, translate.Change); err != nil || !resp.OK() {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, followers[i])
		}
	})
	for _, endpointID := range failed {
		r.Warn("template", "endpoint "+endpointID+" did not take the change over")
	}
}

// updateVirtual edits the endpoint behind a virtual template.
func (r *request) updateVirtual(ctx context.Context, endpointID string) (*reply, error) {
	w := about{verb: "update template", noun: "template"}
	current, err := r.read(ctx, w, "getEndpoint", endpointID)
	if err != nil {
		return nil, err
	}
	patch := r.templatePatch(current)
	delete(patch, "public")
	for _, name := range [...]string{"isPublic", "readme", "volumeInGb", "volumeMountPath"} {
		if r.body.has(name) {
			r.Warn(name, "the template is an endpoint's own and has none, ignored")
		}
	}
	if len(patch) > 0 {
		if current, err = r.send(ctx, w, with(byID("updateEndpoint", endpointID), patch), translate.Change); err != nil {
			return nil, err
		}
	}
	return ok(r.virtualTemplate(current)), nil
}
