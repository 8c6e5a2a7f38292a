package platform

import (
	"net/http"
	"strings"
	"time"
)

// registry is a credential for a private image registry. The secret itself is
// checked on arrival and then forgotten: nothing here ever pulls an image.
type registry struct{ ID, Name string }

func (x *exchange) showRegistry(r *registry) object { return object{"id", r.ID, "name", r.Name} }

// checkRegistryLocked refuses a credential that is not the account's.
func (x *exchange) checkRegistryLocked(id string) error {
	if id != "" && !x.acct.registries.has(id) {
		return badRequest("no registry credential is called '" + id + "'")
	}
	return nil
}

// registryRoutes returns the operations on registries and delegations. The paths of delegations come
// first, because they are below the path of registries.
func registryRoutes() []route {
	return append([]route{
		getRoute("/v2/registries/delegations", "listDelegations", delegations().listAll),
		changeRoute(http.MethodPost, "/v2/registries/delegations", "createDelegation", delegations().createOne),
		deleteRoute("/v2/registries/delegations/{id}", "revokeDelegation", delegations().deleteOne),
	}, registries().routes()...)
}

func registries() resource[registry] {
	return resource[registry]{
		one: "Registry", many: "Registries", path: "/v2/registries", member: "registries", noun: "registry",
		table: func(a *account) *table[registry] { return &a.registries },
		show:  (*exchange).showRegistry,
		id:    func(r *registry) *string { return &r.ID },
		create: writes(func(_ *exchange, r *registry, want *registryRequest) (func(), error) {
			r.Name = want.Name
			return nil, nil
		}),
		remove: (*exchange).removeRegistryLocked,
	}
}

type registryRequest struct {
	Name     string `body:"name" need:"yes" min:"1" max:"191"`
	Username string `body:"username" need:"yes" min:"1" max:"191"`
	Password string `body:"password" need:"yes" min:"1" max:"16384"`
}

// removeRegistryLocked forgets a credential no pod uses; templates silently lose it.
func (x *exchange) removeRegistryLocked(r *registry) error {
	for _, p := range x.acct.pods.order {
		if p.Container.Registry == r.ID {
			return badRequest("the registry credential is in use by pod " + p.ID)
		}
	}
	for _, t := range x.acct.templates.order {
		if t.Container.Registry == r.ID {
			t.Container.Registry = ""
			x.acct.templates.touch(t.ID)
		}
	}
	x.acct.registries.remove(r.ID)
	return nil
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

func (x *exchange) showDelegation(d *delegation) object {
	return object{
		"id", d.ID, "name", optional(d.Name), "delegatorUserId", d.Account, "awsUser", d.AWSUser, "repository", d.Repository, "tag", d.Tag,
		"awsRegion", d.Region, "dockerRegistryUri", d.AWSUser + ".dkr.ecr." + d.Region + ".amazonaws.com/" + d.Repository, "createdAt", d.CreatedAt,
	}
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

func delegations() resource[delegation] {
	return resource[delegation]{
		member: "delegations", noun: "delegation",
		table:  func(a *account) *table[delegation] { return &a.delegations },
		show:   (*exchange).showDelegation,
		id:     func(d *delegation) *string { return &d.ID },
		create: writes((*exchange).delegateLocked),
		remove: func(x *exchange, d *delegation) error {
			x.acct.delegations.remove(d.ID)
			return nil
		},
	}
}

// delegationRequest is the body of a create; resource is an ARN.
type delegationRequest struct {
	Resource string `body:"resource" need:"yes"`
	Name     string `body:"name" null:"yes"`
}

func (x *exchange) delegateLocked(d *delegation, want *delegationRequest) (func(), error) {
	parsed, isARN := parseARN(want.Resource)
	if !isARN {
		return nil, badRequest("resource must read arn:aws:ecr:<region>:<account>:repository/<name>")
	}
	*d = parsed
	d.Name, d.Account, d.CreatedAt = want.Name, x.acct.ID, x.now
	return nil, nil
}
