package v1

import (
	"cmp"
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// endpointView holds the data of an endpoint response that is not in the v2 endpoint.
type endpointView struct {
	note translate.EndpointNote
	// types is the serverless catalog, or nil if it cannot be read.
	types   []any
	version int64
	// template is the v1 template to include, or nil; workers holds the v1 workers to include, or is nil.
	template any
	workers  []any
}

// endpoint returns an endpoint in v1's form. It includes both the documented fields and those that the original service
// also sent.
func (r *request) endpoint(e v2.Endpoint, view endpointView) map[string]any {
	out := map[string]any{
		"id": e.ID(), "name": e.Name(), "userId": r.user(),
		"templateId": legacy.TemplateIDOf(e.ID(), view.note), "version": max(view.version, 1),
		"computeType": "GPU", "gpuTypeIds": translate.List(typesOf(e, view.types, view.note.GPUTypeIDs)),
		"gpuCount": e.GPUCount(), "instanceIds": []any{},
		"allowedCudaVersions": translate.List(e.CUDAVersions()), "minCudaVersion": e.MinCUDA(),
		"dataCenterIds": translate.List(e.DataCenters()), "env": object(e.Env()),
		"executionTimeoutMs": e.Timeout(), "idleTimeout": cmp.Or(e.IdleTimeout(), view.note.IdleTimeout, defaultIdle),
		"scalerType": e.Scaler(), "scalerValue": e.ScalerValue(),
		"workersMin": e.WorkersMin(), "workersMax": e.WorkersMax(), "workersStandby": e.WorkersMax(),
		"createdAt": translate.FormatTime(e.CreatedAt(), translate.LegacyTime),
		"flashboot": e.Flashboot() != v2.FlashbootOff, "flashBootType": e.Flashboot(),
		"gpuIds": legacy.Selection(e), "locations": strings.Join(e.DataCenters(), ","),
	}
	if e.IsCPU() {
		out["computeType"], out["gpuTypeIds"], out["gpuCount"] = "CPU", []any{}, 0
		out["instanceIds"] = translate.List(e.Instances())
	}
	volumes := e.Volumes()
	out["networkVolumeIds"], out["networkVolumeId"] = translate.List(volumes), ""
	if len(volumes) > 0 {
		out["networkVolumeId"] = volumes[0]
	}
	if view.template != nil {
		out["template"] = view.template
	}
	if view.workers != nil {
		out["workers"] = view.workers
	}
	return out
}

// endpointNow returns one endpoint with its current version, which it stores for lists.
func (r *request) endpointNow(ctx context.Context, e v2.Endpoint, note translate.EndpointNote) map[string]any {
	view := endpointView{note: note, types: r.poolTypes(ctx, e.Members), version: r.Version(ctx, e.ID())}
	view.version = cmp.Or(view.version, note.Version)
	if view.version != note.Version {
		note.Version = view.version
		translate.SaveNote(ctx, r.Client, r.Key(translate.KindEndpoint, e.ID()), note)
	}
	return r.endpoint(e, view)
}
