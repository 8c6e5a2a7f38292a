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

// showTemplate is the record; that of another account's template omits the registry
// credential.
func (x *exchange) showTemplate(t *template) object {
	shown := t.Container
	if !x.acct.templates.has(t.ID) {
		shown.Registry = ""
	}
	return append(append(object{"id", t.ID, "name", t.Name}, shown.members()...),
		"mounts", mounts{Persistent: t.Persistent}.record(), "serverless", t.Serverless, "public", t.Public, "category", t.Category,
		"startSsh", t.SSH, "startJupyter", t.Jupyter, "allowedCudaVersions", t.CUDA)
}

// templateRequest is the body of a create or a change, checked for its shape
// only; nil is left out.
type templateRequest struct {
	name, category         *string
	serverless, public     *bool
	startSSH, startJupyter *bool
	cuda                   *[]string
	mounts                 mountsPatch
	container              containerPatch
}

func templateNames() []string {
	return containerNames("name", "allowedCudaVersions", "category", "mounts", "public", "serverless", "startJupyter", "startSsh")
}

func readTemplate(f fields) *templateRequest {
	return &templateRequest{
		name:         given(f.text("name", 1)),
		serverless:   f.flag("serverless"),
		public:       f.flag("public"),
		startSSH:     f.flag("startSsh"),
		startJupyter: f.flag("startJupyter"),
		cuda:         given(f.list("allowedCudaVersions", cudaVersion)),
		mounts:       f.mounts(false),
		container:    f.container(),
		category:     given(f.enum("category", "CPU", "NVIDIA", "AMD")),
	}
}

func readNewTemplate(f fields) *templateRequest {
	f.require("name", "image")
	return readTemplate(f)
}

// over applies a request to a template.
func (r *templateRequest) over(t template) (template, error) {
	var err error
	if t.Container, err = r.container.over(t.Container, replaceEnv); err != nil {
		return t, err
	}
	set(&t.Name, r.name)
	set(&t.Category, r.category)
	set(&t.Serverless, r.serverless)
	set(&t.Public, r.public)
	set(&t.SSH, r.startSSH)
	set(&t.Jupyter, r.startJupyter)
	set(&t.CUDA, r.cuda)
	if r.mounts.Persistent != nil {
		t.Persistent = r.mounts.Persistent
	}
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
		create: writes(templateNames(), readNewTemplate, (*exchange).makeTemplateLocked),
		update: writes(templateNames(), readTemplate, (*exchange).changeTemplateLocked),
		remove: (*exchange).removeTemplateLocked,
	}
}

func (x *exchange) makeTemplateLocked(t *template, want *templateRequest) (func(), error) {
	*t = template{Container: container{Disk: defaultDisk}, Category: "NVIDIA", SSH: true, Jupyter: true}
	return x.changeTemplateLocked(t, want)
}

// changeTemplateLocked changes an own template; what was made from it stays.
func (x *exchange) changeTemplateLocked(t *template, want *templateRequest) (func(), error) {
	changed, err := want.over(*t)
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
