package graphql

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// virtualPrefix begins the ids of templates that stand for the container
// settings of an endpoint whose template is not known.
const virtualPrefix = "ept_"

// Sources of public templates.
const (
	official   = "official"
	verified   = "verified"
	unverified = "community"
)

// template is a template as a value of the schema.
type template struct {
	body any
	// source is where it was listed: a public source, "own", or "" when that is
	// not known.
	source string
	listed bool
}

func (t *template) text(path ...string) string { return translate.Text(t.body, path...) }

func (t *template) note(ctx context.Context, x *exchange) translate.TemplateNote {
	id := t.text("id")
	if t.listed {
		return notes[translate.TemplateNote](ctx, x, translate.KindTemplate)[id]
	}
	n, _, _ := translate.LoadNote[translate.TemplateNote](ctx, x.Dialogue, x.key(translate.KindTemplate, id))
	return n
}

func wrapTemplates(list []any) []any { return templatesFrom(list, "own") }

func templatesFrom(list []any, source string) []any {
	out := make([]any, len(list))
	for i, b := range list {
		out[i] = &template{body: b, source: source, listed: true}
	}
	return out
}

func podTemplate(ctx context.Context, x *exchange, in input) (any, error) {
	id := in.text("id")
	if id == "" {
		return nil, badInput("id is required")
	}
	if endpoint, ok := strings.CutPrefix(id, virtualPrefix); ok {
		b, err := x.fetch(ctx, "getEndpoint", endpoint, nil, kindEndpoint)
		if err != nil {
			return nil, orMissing(err)
		}
		return virtualTemplate(b), nil
	}
	b, err := x.fetch(ctx, "getTemplate", id, nil, kindTemplate)
	if err != nil {
		return nil, orMissing(err)
	}
	return &template{body: b}, nil
}

// orMissing lets a 404 be null instead of an error.
func orMissing(err error) error {
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// virtualTemplate reads an endpoint's container settings as a template.
func virtualTemplate(endpoint any) *template {
	m := map[string]any{}
	maps.Copy(m, translate.Members(endpoint))
	m["id"] = virtualPrefix + translate.Text(endpoint, "id")
	m["serverless"] = true
	return &template{body: m, source: "own"}
}

func podTemplates(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	branded, chosen := a.bool("is" + x.config().Brand)
	sources := []string{official, verified, unverified}
	switch {
	case chosen && branded:
		sources = sources[:1]
	case chosen:
		sources = sources[1:]
	}
	var all []any
	for _, s := range sources {
		list, err := x.publicTemplates(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, templatesFrom(list, s)...)
	}
	if !chosen && !x.anonymous() {
		own, err := x.ownTemplates(ctx)
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
		id := t.text("id")
		if seen[id] || !matches(a, "id", id) || !matches(a, "name", t.text("name")) ||
			filtered && translate.Flag(t.body, "serverless") != serverless {
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
	if brand != "" {
		fields["is"+brand] = field(isOfficial)
	}
	pair := func(name string) resolver {
		return get(func(m map[string]any) any { return translate.Text(m, name) })
	}
	return map[string]objectType{
		"PodTemplate":         fields,
		"PortConfig":          {"port": pair("port"), "name": pair("name")},
		"EnvironmentVariable": {"key": pair("key"), "value": pair("value")},
	}
}

// isOfficial asks the catalog for a template whose source is not known.
func isOfficial(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
	if t.source != "" {
		return t.source == official, nil
	}
	list, err := x.publicTemplates(ctx, official)
	return translate.ByID(list, t.text("id")) != nil, err
}

func templateFields() objectType {
	noted := func(f func(n translate.TemplateNote) any) resolver {
		return field(func(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
			return f(t.note(ctx, x)), nil
		})
	}
	flag := func(name string) resolver {
		return get(func(t *template) any { return translate.Flag(t.body, name) })
	}
	return objectType{
		"id":                get(func(t *template) any { return t.text("id") }),
		"name":              get(func(t *template) any { return t.text("name") }),
		"imageName":         get(func(t *template) any { return t.text("image") }),
		"dockerArgs":        get(func(t *template) any { return translate.ShellOf(t.body) }),
		"containerDiskInGb": get(func(t *template) any { return translate.Whole(t.body, "disk") }),
		"volumeMountPath":   get(func(t *template) any { return t.text("mounts", "persistent", "path") }),
		"volumeInGb": field(func(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
			size := translate.Whole(t.body, "mounts", "persistent", "size")
			if size > 0 && t.note(ctx, x).NoVolume {
				size = 0
			}
			return size, nil
		}),
		"ports":                   get(func(t *template) any { return strings.Join(translate.Texts(t.body, "ports"), ",") }),
		"env":                     get(func(t *template) any { return variables(translate.At(t.body, "env")) }),
		"containerRegistryAuthId": get(func(t *template) any { return t.text("registry") }),
		"isPublic":                flag("public"),
		"isServerless":            flag("serverless"),
		"startSsh":                flag("startSsh"),
		"startJupyter":            flag("startJupyter"),
		"category":                get(func(t *template) any { return orNull(t.text("category")) }),
		"readme":                  noted(func(n translate.TemplateNote) any { return n.Readme }),
		"config":                  noted(func(n translate.TemplateNote) any { return n.Config }),
		"startScript":             noted(func(n translate.TemplateNote) any { return n.StartScript }),
		"advancedStart":           noted(func(n translate.TemplateNote) any { return n.AdvancedStart }),
		"portsConfig":             noted(func(n translate.TemplateNote) any { return portConfigs(n.PortsConfig) }),
		"boundEndpointId":         field(boundEndpoint),
	}
}

// portConfigs reads back what a caller sent; text of another shape is none.
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

// boundEndpoint is the first endpoint that was made from the template.
func boundEndpoint(ctx context.Context, x *exchange, t *template, _ input) (any, error) {
	if ids := t.note(ctx, x).BoundEndpoints; len(ids) > 0 {
		return ids[0], nil
	}
	return nil, nil
}

// variables is an environment as a list of pairs, sorted by key.
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

func deleteTemplate(ctx context.Context, x *exchange, in input) (any, error) {
	name := in.text("templateName")
	if name == "" {
		return nil, badInput("templateName is required")
	}
	list, err := x.ownTemplates(ctx)
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
		return nil, &fault{message: "Template not found", code: codeNotFound}
	}
	if err := x.remove(ctx, "deleteTemplate", id, kindTemplate); err != nil {
		return nil, err
	}
	translate.DropNote(ctx, x.Dialogue, x.key(translate.KindTemplate, id))
	return nil, nil
}
