package platform

import (
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
		ID: p.ID, Name: p.Name, Serverless: p.Serverless, Public: true, Category: orText(p.Category, "NVIDIA"),
		SSH: p.SSH, Jupyter: p.Jupyter, CUDA: slices.Clone(p.CUDA),
		Container: container{
			Image: p.Image, Disk: int64(orInt(p.Disk, defaultDisk)),
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
	return s.catalog.public[id]
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
	b := []byte(`{"templates":[`)
	n := 0
	for _, t := range x.s.catalog.Templates {
		if t.Source != source || n == most {
			continue
		}
		if n > 0 {
			b = append(b, ',')
		}
		n++
		b = x.s.catalog.public[t.ID].append(b, false)
	}
	return ok(append(b, `]}`...)), nil
}

// append writes the record; somebody else's never tells which registry
// credential it uses.
func (t *template) append(b []byte, own bool) []byte {
	shown := t.Container
	if !own {
		shown.Registry = ""
	}
	b = appendText(append(b, `{"id":`...), t.ID)
	b = appendText(append(b, `,"name":`...), t.Name)
	b = shown.appendMembers(append(b, ','))
	b = mounts{Persistent: t.Persistent}.append(append(b, `,"mounts":`...))
	b = appendBool(append(b, `,"serverless":`...), t.Serverless)
	b = appendBool(append(b, `,"public":`...), t.Public)
	b = appendText(append(b, `,"category":`...), t.Category)
	b = appendBool(append(b, `,"startSsh":`...), t.SSH)
	b = appendBool(append(b, `,"startJupyter":`...), t.Jupyter)
	return append(appendTexts(append(b, `,"allowedCudaVersions":`...), t.CUDA), '}')
}
