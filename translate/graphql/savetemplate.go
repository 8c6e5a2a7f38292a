package graphql

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// saveTemplate makes a template, or changes the one with the id.
func saveTemplate(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if a.text("startScript") != "" {
		x.Warn("startScript", "remembered and shown, but not run")
	}
	id := a.text("id")
	if id == "" {
		return createTemplate(ctx, x, a)
	}
	if endpoint, ok := strings.CutPrefix(id, virtualPrefix); ok {
		return updateVirtual(ctx, x, a, endpoint)
	}
	return updateTemplate(ctx, x, a, id)
}

func createTemplate(ctx context.Context, x *exchange, a args) (any, error) {
	if _, err := required(a, "name", "imageName"); err != nil {
		return nil, err
	}
	b := map[string]any{"name": a.text("name"), "startSsh": true, "startJupyter": false}
	containerCreate(b, a)
	templateFlags(b, a)
	serverless, _ := a.bool("isServerless")
	switch size, _ := a.int("volumeInGb"); {
	case size < 0:
		return nil, badInput("volumeInGb must not be negative")
	case size > 0 && serverless:
		x.Warn("volumeInGb", "serverless templates have no volume")
	case size > 0:
		b["mounts"] = persistent(x, size, orElse(a.text("volumeMountPath"), defaultPath))
	}
	made, err := x.createOnce(ctx, creation{
		operation: "createTemplate", body: b, kind: kindTemplate, list: "listTemplates", member: "templates", claims: "template",
	})
	if err != nil {
		return nil, err
	}
	t := &template{body: made, source: "own"}
	x.rememberTemplate(ctx, a, t.text("id"), nil)
	return t, nil
}

// containerCreate sets the container settings a template or endpoint is made
// with; empty values are left out.
func containerCreate(b map[string]any, a args) {
	set(b, "image", a.text("imageName"))
	set(b, "args", a.text("dockerArgs"))
	set(b, "registry", a.text("containerRegistryAuthId"))
	if n, _ := a.int("containerDiskInGb"); n > 0 {
		b["disk"] = translate.Int(n)
	}
	if ports := translate.SplitList(a.text("ports")); len(ports) > 0 {
		b["ports"] = translate.List(ports)
	}
	if env := envOf(a.list("env")); len(env) > 0 {
		b["env"] = env
	}
}

// containerChange sets those that change: an empty value clears where v2 can
// clear.
func containerChange(b map[string]any, a args) {
	set(b, "image", a.text("imageName"))
	if a.has("dockerArgs") {
		b["args"] = a.text("dockerArgs")
	}
	if a.has("containerRegistryAuthId") {
		b["registry"] = orNull(a.text("containerRegistryAuthId"))
	}
	if n, _ := a.int("containerDiskInGb"); n > 0 {
		b["disk"] = translate.Int(n)
	}
	if a.has("ports") {
		b["ports"] = translate.List(translate.SplitList(a.text("ports")))
	}
	if a.has("env") {
		b["env"] = envOf(a.list("env"))
	}
}

func templateFlags(b map[string]any, a args) {
	for legacy, name := range map[string]string{
		"isPublic": "public", "isServerless": "serverless", "startSsh": "startSsh", "startJupyter": "startJupyter",
	} {
		if on, given := a.bool(legacy); given {
			b[name] = on
		}
	}
	set(b, "category", a.text("category"))
}

func updateTemplate(ctx context.Context, x *exchange, a args, id string) (any, error) {
	change := map[string]any{}
	set(change, "name", a.text("name"))
	containerChange(change, a)
	var noVolume *bool
	if a.has("volumeInGb") || a.text("volumeMountPath") != "" {
		current, err := x.fetch(ctx, "getTemplate", id, nil, kindTemplate)
		if err != nil {
			return nil, err
		}
		if noVolume, err = templateVolume(x, change, a, current); err != nil {
			return nil, err
		}
	}
	container := len(change) - has(change, "name")
	templateFlags(change, a)
	b, err := x.changeOrFetch(ctx, "updateTemplate", "getTemplate", id, change, kindTemplate)
	if err != nil {
		return nil, err
	}
	x.rememberTemplate(ctx, a, id, noVolume)
	if container > 0 {
		x.rollOut(ctx, id)
	}
	return &template{body: b, source: "own"}, nil
}

func has(m map[string]any, name string) int {
	if _, ok := m[name]; ok {
		return 1
	}
	return 0
}

// templateVolume decides the mount of an existing template. v2 cannot take one
// away, so that is remembered instead.
func templateVolume(x *exchange, change map[string]any, a args, current any) (noVolume *bool, err error) {
	size, sized := a.int("volumeInGb")
	at := a.text("volumeMountPath")
	serverless, given := a.bool("isServerless")
	if !given {
		serverless = translate.Flag(current, "serverless")
	}
	now := translate.Whole(current, "mounts", "persistent", "size")
	path := orElse(at, orElse(translate.Text(current, "mounts", "persistent", "path"), defaultPath))
	gone := sized && size == 0
	switch {
	case size < 0:
		return nil, badInput("volumeInGb must not be negative")
	case serverless:
		if size > 0 {
			x.Warn("volumeInGb", "serverless templates have no volume")
		}
		return nil, nil
	case size > 0:
		change["mounts"] = persistent(x, size, path)
	case gone && now > 0:
		x.Warn("volumeInGb", "the platform keeps the template's volume, remembered as none")
	case !sized && now > 0 && at != "":
		change["mounts"] = persistent(x, now, path)
		return nil, nil
	}
	if !sized {
		return nil, nil
	}
	return &gone, nil
}

// rememberTemplate stores what v2 does not keep.
func (x *exchange) rememberTemplate(ctx context.Context, a args, id string, noVolume *bool) {
	key := x.key(translate.KindTemplate, id)
	n, _, _ := translate.LoadNote[translate.TemplateNote](ctx, x.Dialogue, key)
	before, _ := json.Marshal(n)
	for name, to := range map[string]*string{"readme": &n.Readme, "config": &n.Config, "startScript": &n.StartScript} {
		if a.has(name) {
			*to = a.text(name)
		}
	}
	if on, given := a.bool("advancedStart"); given {
		n.AdvancedStart = on
	}
	if a.has("portsConfig") {
		if raw, err := json.Marshal(a.list("portsConfig")); err == nil {
			n.PortsConfig = raw
		}
	}
	if noVolume != nil {
		n.NoVolume = *noVolume
	}
	if after, _ := json.Marshal(n); string(after) != string(before) {
		translate.SaveNote(ctx, x.Dialogue, key, n)
	}
}

// rollOut applies an edited template to the endpoints made from it here: in the
// retired service an endpoint followed its template.
func (x *exchange) rollOut(ctx context.Context, id string) {
	if !x.config().TemplateRollout {
		return
	}
	n, _, err := translate.LoadNote[translate.TemplateNote](ctx, x.Dialogue, x.key(translate.KindTemplate, id))
	if err != nil {
		x.Warn("saveTemplate", "the endpoints made from it are not known at the moment and were not updated")
	}
	for _, endpoint := range n.BoundEndpoints {
		change := map[string]any{"templateId": id}
		if _, err := x.change(ctx, "updateEndpoint", endpoint, change, kindEndpoint); err != nil {
			x.Warn("saveTemplate", "endpoint "+endpoint+" was not updated")
		}
	}
}

// updateVirtual changes the endpoint a virtual template stands for.
func updateVirtual(ctx context.Context, x *exchange, a args, endpoint string) (any, error) {
	change := map[string]any{}
	containerChange(change, a)
	b, err := x.changeOrFetch(ctx, "updateEndpoint", "getEndpoint", endpoint, change, kindEndpoint)
	if err != nil {
		return nil, err
	}
	return virtualTemplate(b), nil
}
