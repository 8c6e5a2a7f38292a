package platform

import (
	"cmp"
	"maps"
	"slices"
)

// template is a set of settings to create pods or endpoints from.
type template struct {
	ID, Name     string
	Container    container
	Persistent   *persistentMount
	Serverless   bool
	Public       bool
	Category     string
	SSH, Jupyter bool
	CUDA         []string
}

// noTemplate is what a body without templateId is laid over.
func noTemplate() *template { return &template{Container: container{Disk: defaultDisk}} }

// record is the template a public catalog entry stands for.
func (p PublicTemplate) record() *template {
	t := &template{
		ID: p.ID, Name: p.Name, Serverless: p.Serverless, Public: true, Category: cmp.Or(p.Category, "NVIDIA"),
		SSH: p.SSH, Jupyter: p.Jupyter, CUDA: slices.Clone(p.CUDA),
		Container: container{
			Image: p.Image, Disk: int64(cmp.Or(p.Disk, defaultDisk)),
			Env: maps.Clone(p.Env), Ports: slices.Clone(p.Ports), Command: command{Args: p.Args},
		},
	}
	if c, err := parseArgs(p.Args); err == nil {
		t.Container.Command = c
	}
	if p.PersistentGB > 0 {
		t.Persistent = &persistentMount{Size: int64(p.PersistentGB), Path: p.PersistentPath}
	}
	return t
}

// templateLocked resolves a templateId; an empty one is no template. Unknown is
// 404, the wrong kind 422.
func (x *exchange) templateLocked(id string, serverless bool) (*template, error) {
	if id == "" {
		return noTemplate(), nil
	}
	t := x.s.readableTemplateLocked(x.acct, id)
	switch {
	case t == nil:
		return nil, notFound("template")
	case t.Serverless && !serverless:
		return nil, invalid("$.templateId: the template is for serverless endpoints")
	case !t.Serverless && serverless:
		return nil, invalid("$.templateId: the template is for pods")
	}
	return t, nil
}

// readableTemplateLocked finds a template that is public or a's own.
func (s *Server) readableTemplateLocked(a *account, id string) *template {
	if t := a.templates.get(id); t != nil {
		return t
	}
	if t := s.catalog.public[id]; t != nil {
		return t
	}
	for _, other := range s.accounts {
		if t := other.templates.get(id); t != nil && t.Public {
			return t
		}
	}
	return nil
}

// listPublicTemplates answers the public catalog of one source.
func (x *exchange) listPublicTemplates() (reply, error) {
	p := &params{q: x.query}
	source := p.enum("source", "official", "verified", "community")
	if err := p.err(); err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	const most = 100
	list := x.s.publicTemplatesLocked(source)
	return ok(object{"templates", objects(list[:min(len(list), most)], x.showTemplate)}), nil
}

// publicTemplatesLocked are the templates of one source; what accounts publish
// is of the community.
func (s *Server) publicTemplatesLocked(source string) []*template {
	var list []*template
	for _, t := range s.catalog.Templates {
		if t.Source == source {
			list = append(list, s.catalog.public[t.ID])
		}
	}
	if source != "community" {
		return list
	}
	for _, id := range slices.Sorted(maps.Keys(s.accounts)) {
		for _, t := range s.accounts[id].templates.order {
			if t.Public {
				list = append(list, t)
			}
		}
	}
	return list
}

// showTemplate returns the record of a template, without the registry credential if the template belongs to another account.
func (x *exchange) showTemplate(t *template) object {
	shown := t.Container
	if !x.acct.templates.has(t.ID) {
		shown.Registry = ""
	}
	return append(append(object{"id", t.ID, "name", t.Name}, shown.members()...),
		"mounts", mounts{Persistent: t.Persistent}.record(), "serverless", t.Serverless, "public", t.Public, "category", t.Category,
		"startSsh", t.SSH, "startJupyter", t.Jupyter, "allowedCudaVersions", t.CUDA)
}

// templateRequest is the body of a create or a change.
type templateRequest struct {
	Name       *string   `body:"name" min:"1"`
	Serverless *bool     `body:"serverless"`
	Public     *bool     `body:"public"`
	SSH        *bool     `body:"startSsh"`
	Jupyter    *bool     `body:"startJupyter"`
	CUDA       *[]string `body:"allowedCudaVersions" form:"CUDA version"`
	Mounts     struct {
		Persistent *persistentMount `body:"persistent"`
	} `body:"mounts"`
	containerPatch

	Category *string `body:"category" enum:"CPU NVIDIA AMD"`
}

// newTemplate is the body of a create.
type newTemplate struct{ templateRequest }

func (*newTemplate) check(f fields) { f.require("name", "image") }

// overTemplate applies a request to a template.
func (r *templateRequest) overTemplate(t template) (template, error) {
	var err error
	if t.Container, err = r.over(t.Container, replaceEnv); err != nil {
		return t, err
	}
	set(&t.Name, r.Name)
	set(&t.Category, r.Category)
	set(&t.Serverless, r.Serverless)
	set(&t.Public, r.Public)
	set(&t.SSH, r.SSH)
	set(&t.Jupyter, r.Jupyter)
	set(&t.CUDA, r.CUDA)
	t.Persistent = cmp.Or(r.Mounts.Persistent, t.Persistent)
	return t, nil
}

// set stores what was given.
func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

func templates() resource[template] {
	return resource[template]{
		one: "Template", many: "Templates", path: "/v2/templates", member: "templates", noun: "template", paged: true,
		table:  func(a *account) *table[template] { return &a.templates },
		show:   (*exchange).showTemplate,
		id:     func(t *template) *string { return &t.ID },
		find:   func(x *exchange, id string) *template { return x.s.readableTemplateLocked(x.acct, id) },
		create: writes((*exchange).makeTemplateLocked),
		update: writes((*exchange).changeTemplateLocked),
		remove: (*exchange).removeTemplateLocked,
	}
}

func (x *exchange) makeTemplateLocked(t *template, want *newTemplate) (func(), error) {
	*t = template{Container: container{Disk: defaultDisk}, Category: "NVIDIA", SSH: true, Jupyter: true}
	return x.changeTemplateLocked(t, &want.templateRequest)
}

// changeTemplateLocked changes an own template; what was made from it stays.
func (x *exchange) changeTemplateLocked(t *template, want *templateRequest) (func(), error) {
	changed, err := want.overTemplate(*t)
	if err != nil {
		return nil, err
	}
	if err := x.checkRegistryLocked(changed.Container.Registry); err != nil {
		return nil, err
	}
	*t = changed
	return nil, nil
}

// removeTemplateLocked forgets an own template, unless an endpoint is bound to it.
func (x *exchange) removeTemplateLocked(t *template) error {
	for _, e := range x.acct.endpoints.order {
		if e.TemplateID == t.ID {
			return badRequest("the template is bound to endpoint " + e.ID)
		}
	}
	x.acct.templates.remove(t.ID)
	return nil
}
