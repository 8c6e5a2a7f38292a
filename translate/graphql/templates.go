package graphql

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// Sources of public templates.
const (
	official   = "official"
	verified   = "verified"
	unverified = "community"
)

// template is a template as a value of the schema.
type template struct {
	legacy.Template
	// source is the public source that lists the template, "own", or "" if unknown.
	source string
	// listed reports that the template came from a list, so that its note has not been read.
	listed bool
}

func (t *template) note(ctx context.Context, x *exchange) translate.TemplateNote {
	if !t.listed {
		return t.Note
	}
	// If the store fails, the response is less exact.
	notes, _ := legacy.Notes[translate.TemplateNote](ctx, x.Session, translate.KindTemplate)
	return notes[t.ID()]
}

func wrapTemplates(list []any) []any { return templatesFrom(list, "own") }

func templatesFrom(list []any, source string) []any {
	out := make([]any, len(list))
	for i, b := range list {
		out[i] = listedTemplate(b, source)
	}
	return out
}

func listedTemplate(body any, source string) *template {
	t := v2.TemplateOf(body)
	return &template{Template: legacy.Template{Template: t, KnownAs: t.ID()}, source: source, listed: true}
}

func podTemplate(ctx context.Context, x *exchange, id string) (any, error) {
	t, err := x.Template(ctx, legacy.NounTemplate.Purpose("get"), id)
	if err != nil {
		return nil, orMissing(err)
	}
	return found(t), nil
}

// found wraps a template that was read by its id.
func found(t legacy.Template) *template {
	source := ""
	if legacy.IsVirtual(t.KnownAs) {
		source = "own"
	}
	return &template{Template: t, source: source}
}

// orMissing returns nil for a 404, so that the field is null instead of an error.
func orMissing(err error) error {
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func podTemplates(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	branded, chosen := a.bool("is" + x.config().Legacy.Name())
	sources := []string{official, verified, unverified}
	switch {
	case chosen && branded:
		sources = sources[:1]
	case chosen:
		sources = sources[1:]
	}
	var all []any
	for _, s := range sources {
		list, err := x.PublicTemplates(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, templatesFrom(list, s)...)
	}
	if !chosen && !x.anonymous() {
		own, err := x.OwnTemplates(ctx)
		if err != nil {
			return nil, err
		}
		all = append(templatesFrom(own, "own"), all...)
	}
	serverless, filtered := a.bool("isServerless")
	out := []any{}
	seen := map[string]bool{}
	for _, v := range all {
		t, _ := v.(*template)
		id := t.ID()
		if seen[id] || !matches(a, "id", id) || !matches(a, "name", t.Name()) || filtered && t.Serverless() != serverless {
			continue
		}
		seen[id] = true
		out = append(out, t)
	}
	return out, nil
}

func matches(a args, name, value string) bool { return a.text(name) == "" || a.text(name) == value }

func templateTypes(brand string) map[string]objectType {
	fields := templateFields()
	fields["is"+brand] = field(isOfficial)
	pair := func(name string) resolver {
		return get(func(m map[string]any) any { return translate.Text(m, name) })
	}
	return map[string]objectType{
		"PodTemplate":         fields,
		"PortConfig":          {"port": pair("port"), "name": pair("name")},
		"EnvironmentVariable": {"key": pair("key"), "value": pair("value")},
	}
}

// isOfficial queries the catalog for a template of unknown source.
func isOfficial(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
	if t.source != "" {
		return t.source == official, nil
	}
	list, err := x.PublicTemplates(ctx, official)
	return translate.ByID(list, t.ID()) != nil, err
}

func templateFields() objectType {
	noted := func(f func(t *template, n translate.TemplateNote) any) resolver {
		return field(func(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
			return f(t, t.note(ctx, x)), nil
		})
	}
	return objectType{
		"id":                      get(func(t *template) any { return t.KnownAs }),
		"name":                    get(func(t *template) any { return t.Name() }),
		"imageName":               get(func(t *template) any { return t.Image() }),
		"dockerArgs":              get(func(t *template) any { return t.Shell() }),
		"containerDiskInGb":       get(func(t *template) any { return t.Disk() }),
		"volumeMountPath":         get(func(t *template) any { return t.PersistentPath() }),
		"ports":                   get(func(t *template) any { return strings.Join(t.Ports(), ",") }),
		"env":                     get(func(t *template) any { return variables(any(t.Env())) }),
		"containerRegistryAuthId": get(func(t *template) any { return t.Registry() }),
		"isPublic":                get(func(t *template) any { return t.Public() }),
		"isServerless":            get(func(t *template) any { return t.Serverless() }),
		"startSsh":                get(func(t *template) any { return t.StartSSH() }),
		"startJupyter":            get(func(t *template) any { return t.StartJupyter() }),
		"category":                get(func(t *template) any { return orNull(t.Category()) }),
		"readme":                  noted(func(_ *template, n translate.TemplateNote) any { return n.Readme }),
		"config":                  noted(func(_ *template, n translate.TemplateNote) any { return n.Config }),
		"startScript":             noted(func(_ *template, n translate.TemplateNote) any { return n.StartScript }),
		"advancedStart":           noted(func(_ *template, n translate.TemplateNote) any { return n.AdvancedStart }),
		"portsConfig":             noted(func(_ *template, n translate.TemplateNote) any { return portConfigs(n.PortsConfig) }),
		"boundEndpointId":         field(boundEndpoint),
		"earned":                  always(0), // v2 pays nothing for templates
		"runtimeInMin":            always(0),
		"volumeInGb": field(func(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
			if t.PersistentSize() > 0 && t.note(ctx, x).NoVolume {
				return 0, nil
			}
			return t.PersistentSize(), nil
		}),
	}
}

// portConfigs decodes the ports that a caller sent. Text of another form gives an empty list.
func portConfigs(raw json.RawMessage) []any {
	var list []map[string]any
	if json.Unmarshal(raw, &list) != nil {
		return []any{}
	}
	out := make([]any, len(list))
	for i, m := range list {
		out[i] = m
	}
	return out
}

// boundEndpoint returns the id of the first endpoint that was created from the template.
func boundEndpoint(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
	// If the store fails, the response is less exact.
	if ids, _ := x.BoundEndpoints(ctx, t.KnownAs); len(ids) > 0 {
		return ids[0], nil
	}
	return nil, nil
}

// variables converts an environment to a list of pairs, sorted by key.
func variables(v any) []any {
	env, err := translate.Env(v)
	if err != nil {
		return []any{}
	}
	out := make([]any, 0, len(env))
	for _, key := range slices.Sorted(maps.Keys(env)) {
		out = append(out, map[string]any{"key": key, "value": env[key]})
	}
	return out
}

func deleteTemplate(ctx context.Context, x *exchange, name string) (any, error) {
	list, err := x.OwnTemplates(ctx)
	if err != nil {
		return nil, err
	}
	id := ""
	for _, t := range list {
		if translate.Text(t, "name") != name {
			continue
		}
		if id != "" {
			return nil, badInput("Template name is ambiguous")
		}
		id = translate.Text(t, "id")
	}
	if id == "" {
		return nil, newFault("Template not found", codeNotFound, 0)
	}
	return nil, x.DeleteTemplate(ctx, id)
}

// saveTemplate creates a template, or updates the one with the given id.
func saveTemplate(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if a.text("startScript") != "" {
		x.WarnLost("startScript", "stored and returned, but not executed")
	}
	id, w := a.text("id"), templateInput(a)
	if id == "" {
		if err := required(a, "name", "imageName"); err != nil {
			return nil, err
		}
		forNew(&w.Container)
	}
	save := x.CreateTemplate
	if id != "" {
		save = func(ctx context.Context, w *legacy.TemplateInput) (legacy.Template, error) {
			return x.UpdateTemplate(ctx, id, w)
		}
	}
	t, err := save(ctx, w)
	if err != nil {
		return nil, err
	}
	return &template{Template: t, source: "own"}, nil
}

func templateInput(a args) *legacy.TemplateInput {
	w := &legacy.TemplateInput{
		PodInput: podInput(a, map[string]string{"category": "category", "isPublic": "public", "isServerless": "serverless"}),
		Readme:   optional[string](a, "readme"), Config: optional[string](a, "config"), StartScript: optional[string](a, "startScript"),
		AdvancedStart: optional[bool](a, "advancedStart"),
	}
	if raw, err := json.Marshal(a.list("portsConfig")); err == nil && a.has("portsConfig") {
		w.PortsConfig = raw
	}
	return w
}

// containerInput reads the container settings that templates, endpoints and pods have in common.
func containerInput(a args) legacy.Container {
	w := legacy.Container{
		Image: optional[string](a, "imageName"), Args: optional[string](a, "dockerArgs"),
		Disk: optional[int64](a, "containerDiskInGb"), Registry: optional[string](a, "containerRegistryAuthId"),
	}
	if a.has("ports") {
		w.Ports = legacy.Given(translate.SplitList(a.text("ports")))
	}
	if a.has("env") {
		w.Env = legacy.Given(variablesOf(a.list("env")))
	}
	return w
}

// forNew treats an empty list of ports as absent, as new resources require.
func forNew(w *legacy.Container) {
	if len(w.Ports.Value()) == 0 {
		w.Ports = legacy.Optional[[]string]{}
	}
}
