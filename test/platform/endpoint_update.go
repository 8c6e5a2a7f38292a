package platform

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// changeEndpointLocked changes an endpoint. What the container is made of becomes a
// new release; the rest holds at once.
func (x *exchange) changeEndpointLocked(e *endpoint, r *endpointChange) (func(), error) {
	changed := *e
	mode := replaceEnv
	if r.TemplateID != nil {
		t, err := x.templateLocked(*r.TemplateID, true)
		if err != nil {
			return nil, err
		}
		changed.Container, mode = t.Container, mergeEnv
	}
	if r.GPU != nil && e.GPU == nil || r.CPU != nil && e.CPU == nil {
		return nil, badRequest("an endpoint cannot change between gpu and cpu")
	}
	if err := x.applyEndpointLocked(&changed, &r.endpointRequest, mode); err != nil {
		return nil, err
	}
	if changed.Max > e.Max {
		if err := x.canPay(0); err != nil {
			return nil, err
		}
	}
	if diff := e.diff(&changed); len(diff) > 0 {
		changed.release(x.now, x.acct.ID, diff)
	}
	*e = changed
	x.s.scheduleLocked(x.acct, e, x.now)
	return nil, nil
}

// release is one version of an endpoint's container.
type release struct {
	ID        string
	Version   int
	By        string
	CreatedAt time.Time
	Diff      []diffEntry
	Build     string // the id of the build that made it; empty is a change by hand
}

// diffEntry is one field that differs from the release before; Old and New are
// JSON.
type diffEntry struct {
	Field    string
	Old, New json.RawMessage
}

func (e *endpoint) release(now time.Time, by string, diff []diffEntry) {
	e.Version++
	e.Releases = append(slices.Clone(e.Releases), release{
		ID: hex8(digest(e.ID, stampFine(now))) + hex8(digest(stampFine(now), e.Name, strconv.Itoa(e.Version))), Version: e.Version, By: by, CreatedAt: now, Diff: diff,
	})
}

// diff lists what a change makes of the container and its machine.
func (e *endpoint) diff(to *endpoint) []diffEntry {
	var out []diffEntry
	add := func(field string, before, after any) {
		if old, now := appendValue(nil, before), appendValue(nil, after); string(old) != string(now) {
			out = append(out, diffEntry{Field: field, Old: old, New: now})
		}
	}
	a, b := e.Container, to.Container
	add("template.imageName", a.Image, b.Image)
	add("template.dockerArgs", a.Command.Args, b.Command.Args)
	add("template.env", a.Env, b.Env)
	add("template.containerDiskInGb", a.Disk, b.Disk)
	add("template.ports", a.Ports, b.Ports)
	add("template.containerRegistryAuthId", optional(a.Registry), optional(b.Registry))
	add("compute", e.compute(), to.compute())
	return out
}

func (x *exchange) releasesLocked(e *endpoint) (reply, error) {
	p := &params{q: x.query}
	pg := x.page(p, maxPage, "")
	if err := p.err(); err != nil {
		return reply{}, err
	}
	onLatest := 0
	perVersion := map[int]int{}
	for _, w := range e.Fleet {
		perVersion[w.Version]++
		if w.Version == e.Version {
			onLatest++
		}
	}
	version := func(r release) uint64 { return uint64(r.Version) }
	o := object{"endpointVersion", e.Version, "rollout", object{
		"inProgress", onLatest < len(e.Fleet), "workersOnLatest", onLatest, "workersTotal", len(e.Fleet),
		"percentOnLatest", 100 * onLatest / max(len(e.Fleet), 1),
	}}
	one := func(r release) object { return r.record(perVersion[r.Version]) }
	return ok(append(o, paged(pg, "releases", e.Releases, version, nil, one)...)), nil
}

func (r release) record(workers int) object {
	source := "MANUAL"
	if r.Build != "" {
		source = "GIT_BUILD"
	}
	diff := objects(r.Diff, func(d diffEntry) object { return object{"field", d.Field, "old", d.Old, "new", d.New} })
	return object{
		"id", r.ID, "version", r.Version, "source", source, "buildId", optional(r.Build), "createdByUserId", r.By, "workerCount", workers,
		"createdAt", r.CreatedAt, "diff", diff,
	}
}
