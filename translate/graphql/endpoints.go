package graphql

import (
	"cmp"
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// endpoint is a serverless endpoint as a value of the schema.
type endpoint struct {
	v2.Endpoint
	listed bool
	// known is the stored note of the endpoint, or nil if it has not been read.
	known *translate.EndpointNote
}

func (e *endpoint) note(ctx context.Context, x *exchange) translate.EndpointNote {
	switch {
	case e.known != nil:
		return *e.known
	case !e.listed:
		return x.EndpointNote(ctx, e.ID())
	}
	// If the store fails, the response is less exact.
	notes, _ := legacy.Notes[translate.EndpointNote](ctx, x.Session, translate.KindEndpoint)
	return notes[e.ID()]
}

func wrapEndpoints(list []any) []any {
	out := make([]any, len(list))
	for i, b := range list {
		out[i] = &endpoint{Endpoint: v2.EndpointOf(b), listed: true}
	}
	return out
}

func (x *exchange) endpointByID(ctx context.Context, id string) (any, error) {
	if id == "" {
		return nil, badInput("id is required")
	}
	e, err := x.Endpoint(ctx, legacy.NounEndpoint.Purpose("get"), id)
	if err != nil {
		return nil, orMissing(err)
	}
	return &endpoint{Endpoint: e}, nil
}

// gpuIDs returns the string that the caller sent if the string still describes the current selection, so that written values read back
// unchanged.
func (e *endpoint) gpuIDs(ctx context.Context, x *exchange) string {
	sent := e.note(ctx, x).GPUIDs
	if sent != "" && !e.IsCPU() && x.IsSelected(ctx, translate.SplitList(sent), e.Endpoint) {
		return sent
	}
	return legacy.Selection(e.Endpoint)
}

// locations returns the string that the caller sent, or "", because the string cannot be derived from the data centres.
func (e *endpoint) locations(ctx context.Context, x *exchange) string {
	centres := e.DataCenters()
	if n := e.note(ctx, x); n.Locations != "" && len(centres) > 0 {
		return n.Locations
	}
	return strings.Join(centres, ",")
}

func (e *endpoint) instances() any {
	if !e.IsCPU() {
		return nil
	}
	return translate.List(e.Instances())
}

// minCUDA returns null for a CPU endpoint, because a client would treat "" as a version.
func (e *endpoint) minCUDA() any {
	if e.IsCPU() {
		return nil
	}
	return e.MinCUDA()
}

func endpointTypes() map[string]objectType {
	return map[string]objectType{
		"Endpoint": endpointFields(),
		"EndpointNetworkVolume": {
			"networkVolumeId": get(func(id volumeID) any { return string(id) }),
			"dataCenterId": field(func(ctx context.Context, x *exchange, id volumeID, _ input) (any, error) {
				v, err := x.volumeByID(ctx, string(id))
				return orNull(translate.Text(v, "dataCenter")), err
			}),
		},
	}
}

// volumeID is the id of a network volume of an endpoint.
type volumeID string

func endpointFields() objectType {
	of := func(f func(e *endpoint) any) resolver { return get(f) }
	noted := func(f func(ctx context.Context, x *exchange, e *endpoint) any) resolver {
		return field(func(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) { return f(ctx, x, e), nil })
	}
	return objectType{
		"id":     of(func(e *endpoint) any { return e.ID() }),
		"name":   of(func(e *endpoint) any { return e.Name() }),
		"userId": userID,
		"type": of(func(e *endpoint) any {
			if e.Type() == v2.LoadBalancer {
				return "LB"
			}
			return "QB"
		}),
		"templateId": noted(func(ctx context.Context, x *exchange, e *endpoint) any {
			return legacy.TemplateIDOf(e.ID(), e.note(ctx, x))
		}),
		"template":            field(endpointTemplate),
		"gpuIds":              noted(func(ctx context.Context, x *exchange, e *endpoint) any { return e.gpuIDs(ctx, x) }),
		"gpuCount":            of(func(e *endpoint) any { return e.GPUCount() }),
		"instanceIds":         of(func(e *endpoint) any { return e.instances() }),
		"computeType":         of(func(e *endpoint) any { return e.computeType() }),
		"allowedCudaVersions": of(func(e *endpoint) any { return strings.Join(e.CUDAVersions(), ",") }),
		"minCudaVersion":      of(func(e *endpoint) any { return e.minCUDA() }),
		"locations":           noted(func(ctx context.Context, x *exchange, e *endpoint) any { return e.locations(ctx, x) }),
		"compliance":          always(nil),
		"networkVolumeId":     of(func(e *endpoint) any { return orNull(e.firstVolume()) }),
		"networkVolume": field(func(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
			return x.volumeByID(ctx, e.firstVolume())
		}),
		"networkVolumeIds": of(func(e *endpoint) any {
			out := []any{}
			for _, id := range e.Volumes() {
				out = append(out, volumeID(id))
			}
			return out
		}),
		"workersMin":       of(func(e *endpoint) any { return e.WorkersMin() }),
		"workersMax":       of(func(e *endpoint) any { return e.WorkersMax() }),
		"workersStandby":   of(func(e *endpoint) any { return e.WorkersMax() }),
		"workersPFBTarget": always(0),
		"idleTimeout": noted(func(ctx context.Context, x *exchange, e *endpoint) any {
			if n := e.IdleTimeout(); n > 0 {
				return n
			}
			return cmp.Or(e.note(ctx, x).IdleTimeout, 5)
		}),
		"scalerType":         of(func(e *endpoint) any { return e.Scaler() }),
		"scalerValue":        of(func(e *endpoint) any { return e.ScalerValue() }),
		"executionTimeoutMs": of(func(e *endpoint) any { return e.Timeout() }),
		"flashBootType":      of(func(e *endpoint) any { return e.Flashboot() }),
		"env":                of(func(e *endpoint) any { return variables(any(e.Env())) }),
		"version":            field(endpointVersion),
		"createdAt":          of(func(e *endpoint) any { return orNull(instant(e.CreatedAt())) }),
		"activeBuildid":      always(nil),
		"idePodId":           always(nil),
		"flashEnvironmentId": always(nil),
		"hubReleaseId":       noted(func(ctx context.Context, x *exchange, e *endpoint) any { return orNull(e.note(ctx, x).HubReleaseID) }),
		"modelReferences":    always(nil),
		"pods":               field(endpointWorkers),
	}
}

func (e *endpoint) firstVolume() string {
	if ids := e.Volumes(); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

func (e *endpoint) computeType() string {
	if e.IsCPU() {
		return "CPU"
	}
	return "GPU"
}

// endpointVersion reads the version of a single endpoint. In a list it returns 1, because it would need one call for each
// endpoint and no caller depends on it.
func endpointVersion(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
	if e.listed {
		return 1, nil
	}
	return max(x.Version(ctx, e.ID()), 1), nil
}

// endpointTemplate returns the real template if it can still be read. Otherwise it returns the endpoint's own settings under the same id.
func endpointTemplate(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
	note := e.note(ctx, x)
	id := note.TemplateID
	if id == "" {
		return found(legacy.VirtualTemplate(e.Members, note)), nil
	}
	if e.listed {
		list, err := x.OwnTemplates(ctx)
		if err != nil {
			return nil, err
		}
		if t := translate.ByID(list, id); t != nil {
			return listedTemplate(t, "own"), nil
		}
	}
	t, err := x.Template(ctx, legacy.NounTemplate.Purpose("get"), id)
	switch {
	case legacy.IsMissing(err):
		t = legacy.VirtualTemplate(e.Members, note)
		t.KnownAs = id
	case err != nil:
		return nil, err
	}
	return found(t), nil
}

// endpointWorkers lists the active workers as pods.
func endpointWorkers(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
	workers, err := x.Workers(ctx, e.ID())
	if err != nil {
		return nil, err
	}
	out, group := []any{}, &podGroup{}
	for _, w := range workers {
		m := map[string]any{
			"id": translate.Text(w, "id"), "name": e.Name(), "status": "RUNNING", "image": translate.Text(w, "image"),
			"dataCenterId": translate.Text(w, "dataCenterId"), "startedAt": translate.Text(w, "startedAt"),
			"createdAt": translate.Text(w, "startedAt"), "cloud": secure,
		}
		if id := translate.Text(w, "gpuTypeId"); id != "" {
			m["gpu"] = map[string]any{"id": id, "count": translate.At(w, "gpuCount")}
		}
		p := &pod{Pod: v2.PodOf(m), endpoint: e.ID(), version: translate.At(w, "version"), group: group}
		out, group.ids = append(out, p), append(group.ids, p.ID())
	}
	return out, nil
}

func updateEndpointTemplate(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if err := required(a, "endpointId", "templateId"); err != nil {
		return nil, err
	}
	w, err := x.endpointInput(args{"templateId": a.text("templateId")}, nil)
	if err != nil {
		return nil, err
	}
	e, note, err := x.UpdateEndpoint(ctx, a.text("endpointId"), w)
	if err != nil {
		return nil, err
	}
	return &endpoint{Endpoint: e, known: &note}, nil
}
