package platform

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// changeEndpointLocked changes an endpoint. What the container is made of becomes a
// new release; the rest holds at once.
func (x *exchange) changeEndpointLocked(e *endpoint, r *endpointRequest) (func(), error) {
	changed := *e
	mode := replaceEnv
	if r.templateID != nil {
		t, err := x.templateLocked(*r.templateID, true)
		if err != nil {
			return nil, err
		}
		changed.Container, mode = t.Container, mergeEnv
	}
	if r.gpu != nil && e.GPU == nil || r.cpu != nil && e.CPU == nil {
		return nil, badRequest("an endpoint cannot change between gpu and cpu")
	}
	if err := x.applyEndpointLocked(&changed, r, mode); err != nil {
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
	add := func(field string, old, now []byte) {
		if string(old) != string(now) {
			out = append(out, diffEntry{Field: field, Old: old, New: now})
		}
	}
	a, b := e.Container, to.Container
	add("template.imageName", appendText(nil, a.Image), appendText(nil, b.Image))
	add("template.dockerArgs", appendText(nil, a.Command.Args), appendText(nil, b.Command.Args))
	add("template.env", appendMap(nil, a.Env), appendMap(nil, b.Env))
	add("template.containerDiskInGb", appendInt(nil, a.Disk), appendInt(nil, b.Disk))
	add("template.ports", appendTexts(nil, a.Ports), appendTexts(nil, b.Ports))
	add("template.containerRegistryAuthId", appendTextOrNull(nil, a.Registry), appendTextOrNull(nil, b.Registry))
	add("compute", e.compute(), to.compute())
	return out
}

// compute is the gpu and cpu members as one object.
func (e *endpoint) compute() []byte {
	b := e.appendCompute(nil)
	b[0] = '{' // in place of the comma between members
	return append(b, '}')
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
	b := appendInt([]byte(`{"endpointVersion":`), e.Version)
	b = appendBool(append(b, `,"rollout":{"inProgress":`...), onLatest < len(e.Fleet))
	b = appendInt(append(b, `,"workersOnLatest":`...), onLatest)
	b = appendInt(append(b, `,"workersTotal":`...), len(e.Fleet))
	b = appendInt(append(b, `,"percentOnLatest":`...), 100*onLatest/max(len(e.Fleet), 1))
	version := func(r release) uint64 { return uint64(r.Version) }
	return ok(appendPage(append(b, `},"releases":`...), pg, e.Releases, version, nil, func(b []byte, r release) []byte { return r.append(b, perVersion[r.Version]) })), nil
}

func (r release) append(b []byte, workers int) []byte {
	b = appendText(append(b, `{"id":`...), r.ID)
	b = appendInt(append(b, `,"version":`...), r.Version)
	source := "MANUAL"
	if r.Build != "" {
		source = "GIT_BUILD"
	}
	b = appendText(append(b, `,"source":`...), source)
	b = appendTextOrNull(append(b, `,"buildId":`...), r.Build)
	b = appendText(append(b, `,"createdByUserId":`...), r.By)
	b = appendInt(append(b, `,"workerCount":`...), workers)
	b = appendTime(append(b, `,"createdAt":`...), r.CreatedAt)
	return appendList(append(b, `,"diff":`...), r.Diff, func(b []byte, d diffEntry) []byte {
		b = appendText(append(b, `{"field":`...), d.Field)
		b = append(append(b, `,"old":`...), d.Old...)
		return append(append(append(b, `,"new":`...), d.New...), '}')
	})
}
