package v1

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// endpointView is what an endpoint response is made of besides the v2 endpoint.
type endpointView struct {
	note translate.EndpointNote
	// types is the serverless catalog, nil when it cannot be read.
	types   []any
	version int64
	// template is the v1 shape to include, nil for none; workers likewise.
	template any
	workers  []any
}

// endpoint writes a v2 endpoint in v1's shape, the documented names and those
// seen on the wire together.
func (r *request) endpoint(e any, view endpointView) map[string]any {
	id := translate.Text(e, "id")
	out := map[string]any{
		"id": id, "name": translate.Text(e, "name"), "userId": r.user(),
		"templateId": legacy.TemplateIDOf(id, view.note), "version": max(view.version, 1),
		"computeType": "GPU", "gpuTypeIds": translate.List(typesOf(e, view.types, view.note.GPUTypeIDs)),
		"gpuCount": translate.Whole(e, "gpu", "count"), "instanceIds": []any{},
		"allowedCudaVersions": translate.List(translate.Texts(e, "gpu", "allowedCudaVersions")),
		"minCudaVersion":      translate.Text(e, "gpu", "minCudaVersion"),
		"dataCenterIds":       translate.List(translate.Texts(e, "dataCenterIds")),
		"env":                 object(e, "env"),
		"executionTimeoutMs":  translate.Whole(e, "timeout"),
		"idleTimeout":         idleTimeout(e, view.note),
		"scalerType":          translate.Text(e, "scaling", "type"), "scalerValue": scalerValue(e),
		"workersMin":     translate.Whole(e, "workers", "min"),
		"workersMax":     translate.Whole(e, "workers", "max"),
		"workersStandby": translate.Whole(e, "workers", "max"),
		"createdAt":      translate.FormatTime(translate.Text(e, "createdAt"), r.api.timeLayout),
		"flashboot":      translate.Text(e, "flashboot") != "OFF",
		"flashBootType":  translate.Text(e, "flashboot"),
		"gpuIds":         gpuIDs(e),
		"locations":      strings.Join(translate.Texts(e, "dataCenterIds"), ","),
	}
	if flavours := translate.Items(e, "cpu"); len(flavours) > 0 {
		out["computeType"], out["gpuTypeIds"], out["gpuCount"] = "CPU", []any{}, 0
		out["instanceIds"] = translate.List(instanceIDs(flavours))
	}
	volumes := translate.Texts(e, "networkVolumes")
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

func instanceIDs(flavours []any) []string {
	var list []string
	for _, f := range flavours {
		list = append(list, translate.Text(f, "id")+"-"+
			strconv.FormatInt(translate.Whole(f, "vcpuCount"), 10)+"-"+strconv.FormatInt(translate.Whole(f, "memory"), 10))
	}
	return list
}

func idleTimeout(e any, note translate.EndpointNote) int64 {
	if idle := translate.Whole(e, "workers", "idleTimeout"); idle > 0 {
		return idle
	}
	if note.IdleTimeout > 0 {
		return note.IdleTimeout
	}
	return defaultIdle
}

// scalerValue is an integer in v1; v2's delays may have halves, which are
// rounded up.
func scalerValue(e any) int64 {
	for _, member := range [...]string{"queueDelay", "requestCount"} {
		if n, ok := translate.Number(translate.At(e, "scaling", member)); ok && math.Abs(n) < 1<<53 {
			return int64(math.Ceil(n))
		}
	}
	return 0
}

// endpointNow writes one endpoint with its current version, and remembers note
// with it.
func (r *request) endpointNow(ctx context.Context, e any, note translate.EndpointNote) map[string]any {
	id := translate.Text(e, "id")
	view := endpointView{note: note, types: r.poolCards(ctx, e), version: r.version(ctx, id)}
	if view.version == 0 {
		view.version = note.Version
	}
	note.Version = view.version
	translate.SaveNote(ctx, r.Dialogue, r.Key(translate.KindEndpoint, id), note)
	return r.endpoint(e, view)
}

// version is the number of the endpoint's newest release, 0 when it cannot be
// read.
func (r *request) version(ctx context.Context, id string) int64 {
	resp, err := r.Send(ctx, byID("listEndpointReleases", id), translate.Once)
	if err != nil || !resp.OK() {
		return 0
	}
	return translate.Whole(resp.Body, "endpointVersion")
}
