package platform

import (
	"net/http"
	"strings"
	"time"
)

// registry is a credential for a private image registry. The secret itself is
// checked on arrival and then forgotten: nothing here ever pulls an image.
type registry struct{ ID, Name string }

func (r *registry) append(b []byte) []byte {
	b = appendText(append(b, `{"id":`...), r.ID)
	return append(appendText(append(b, `,"name":`...), r.Name), '}')
}

// checkRegistryLocked refuses a credential that is not the account's.
func (x *exchange) checkRegistryLocked(id string) error {
	if id != "" && !x.acct.registries.has(id) {
		return badRequest("no registry credential is called '" + id + "'")
	}
	return nil
}

func (x *exchange) listRegistries() (reply, error) {
	x.lock()
	defer x.unlock()
	return ok(appendList([]byte(`{"registries":`), x.acct.registries.order, func(b []byte, r *registry) []byte { return r.append(b) })), nil
}

func (x *exchange) createRegistry() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	var c checker
	r := &registry{}
	if f, isObject := c.object("$", body, "name", "username", "password"); isObject {
		f.require("name", "username", "password")
		r.Name, _ = f.text("name", 1)
		f.text("username", 1)
		f.text("password", 1)
	}
	if err := c.err(); err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	r.ID = x.s.newIDLocked(x.acct.registries.has)
	x.acct.registries.add(r.ID, r)
	return reply{status: http.StatusCreated, body: r.append(nil)}, nil
}

func (x *exchange) getRegistry() (reply, error) {
	x.lock()
	defer x.unlock()
	r := x.acct.registries.get(x.params[0])
	if r == nil {
		return reply{}, notFound("registry")
	}
	return ok(r.append(nil)), nil
}

// deleteRegistry forgets a credential no pod uses; templates silently lose it.
func (x *exchange) deleteRegistry() (reply, error) {
	x.lock()
	defer x.unlock()
	id := x.params[0]
	if !x.acct.registries.has(id) {
		return reply{}, notFound("registry")
	}
	for _, p := range x.acct.pods.order {
		if p.Container.Registry == id {
			return reply{}, badRequest("the registry credential is in use by pod " + p.ID)
		}
	}
	for _, t := range x.acct.templates.order {
		if t.Container.Registry == id {
			t.Container.Registry = ""
			x.acct.templates.touch(t.ID)
		}
	}
	x.acct.registries.remove(id)
	return noContent(), nil
}

// delegation lets the platform pull from a private cloud registry by role
// rather than by password.
type delegation struct {
	ID         string
	Name       string
	Account    string // who delegated it
	AWSUser    string
	Repository string
	Tag        string
	Region     string
	CreatedAt  time.Time
}

func (d *delegation) append(b []byte) []byte {
	b = appendText(append(b, `{"id":`...), d.ID)
	b = appendTextOrNull(append(b, `,"name":`...), d.Name)
	b = appendText(append(b, `,"delegatorUserId":`...), d.Account)
	b = appendText(append(b, `,"awsUser":`...), d.AWSUser)
	b = appendText(append(b, `,"repository":`...), d.Repository)
	b = appendText(append(b, `,"tag":`...), d.Tag)
	b = appendText(append(b, `,"awsRegion":`...), d.Region)
	b = appendText(append(b, `,"dockerRegistryUri":`...), d.AWSUser+".dkr.ecr."+d.Region+".amazonaws.com/"+d.Repository)
	return append(appendTime(append(b, `,"createdAt":`...), d.CreatedAt), '}')
}

// parseARN reads arn:aws:ecr:<region>:<account>:repository/<name>[:<tag>].
func parseARN(arn string) (d delegation, ok bool) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[1] != "aws" || parts[2] != "ecr" || parts[3] == "" || !digits(parts[4]) {
		return d, false
	}
	name, found := strings.CutPrefix(parts[5], "repository/")
	repository, tag, tagged := strings.Cut(name, ":")
	if !tagged {
		tag = "latest"
	}
	d = delegation{AWSUser: parts[4], Repository: repository, Tag: tag, Region: parts[3]}
	return d, found && repository != "" && tag != ""
}

func (x *exchange) listDelegations() (reply, error) {
	x.lock()
	defer x.unlock()
	return ok(appendList([]byte(`{"delegations":`), x.acct.delegations.order, func(b []byte, d *delegation) []byte { return d.append(b) })), nil
}

func (x *exchange) createDelegation() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	var c checker
	resource, name := "", ""
	if f, isObject := c.object("$", body, "resource", "name"); isObject {
		f.require("resource")
		resource, _ = f.text("resource", 0)
		if f.m["name"] != nil {
			name, _ = f.text("name", 0)
		}
	}
	if err := c.err(); err != nil {
		return reply{}, err
	}
	d, isARN := parseARN(resource)
	if !isARN {
		return reply{}, badRequest("resource must read arn:aws:ecr:<region>:<account>:repository/<name>")
	}
	x.lock()
	defer x.unlock()
	d.ID, d.Name = x.s.newIDLocked(x.acct.delegations.has), name
	d.Account, d.CreatedAt = x.acct.ID, x.now
	x.acct.delegations.add(d.ID, &d)
	return reply{status: http.StatusCreated, body: d.append(nil)}, nil
}

func (x *exchange) revokeDelegation() (reply, error) {
	x.lock()
	defer x.unlock()
	if !x.acct.delegations.has(x.params[0]) {
		return reply{}, notFound("delegation")
	}
	x.acct.delegations.remove(x.params[0])
	return noContent(), nil
}
