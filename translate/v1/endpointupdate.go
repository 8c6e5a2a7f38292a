package v1

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// endpointUpdate builds the PATCH of one update. Fields that v2 only takes
// whole are filled up from the endpoint as it is.
type endpointUpdate struct {
	*request
	id      string
	current any
	note    translate.EndpointNote
	patch   map[string]any
	// templateID is the template the endpoint shall follow from now on.
	templateID string
	origin     *translate.Origin
}

func updateEndpoint(ctx context.Context, r *request) (*reply, error) {
	u := endpointUpdate{request: r, id: r.param("endpointId"), patch: map[string]any{}}
	w := about{verb: "update endpoint", noun: "endpoint"}
	var err error
	if u.current, err = r.read(ctx, w, "getEndpoint", u.id); err != nil {
		return nil, err
	}
	u.note = r.EndpointNote(ctx, u.id)
	if err := u.build(ctx); err != nil {
		return nil, err
	}
	after := u.current
	if len(u.patch) > 0 {
		if u.patch["templateId"] != nil {
			w = unknown("template", u.templateID)
			w.verb = "update endpoint"
		}
		call := with(byID("updateEndpoint", u.id), u.patch)
		call.Origin = u.origin
		if after, err = r.send(ctx, w, call, translate.Change); err != nil {
			return nil, err
		}
	}
	if u.templateID != "" {
		u.note.TemplateID = u.templateID
	}
	return ok(r.endpointNow(ctx, after, u.note)), nil
}

func (u *endpointUpdate) build(ctx context.Context) error {
	for _, step := range [...]func(context.Context) error{u.family, u.plain, u.template, u.workers, u.scaling, u.gpu, u.cpu} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// family refuses to change what an endpoint runs on.
func (u *endpointUpdate) family(context.Context) error {
	in, isCPU := u.body, len(translate.Items(u.current, "cpu")) > 0
	gpu := len(in.texts("gpuTypeIds")) > 0 || in.has("gpuCount") || in.has("allowedCudaVersions") || in.text("minCudaVersion") != ""
	cpu := len(in.texts("cpuFlavorIds")) > 0 || in.has("vcpuCount")
	if isCPU && gpu || !isCPU && cpu {
		return bad("compute type of an endpoint cannot be changed")
	}
	return nil
}

func (u *endpointUpdate) plain(context.Context) error {
	in := u.body
	if name := in.text("name"); name != "" {
		u.patch["name"] = name
	}
	if in.has("executionTimeoutMs") {
		u.patch["timeout"] = translate.Int(in.whole("executionTimeoutMs", 0))
	}
	if in.has("flashboot") {
		now := translate.Text(u.current, "flashboot")
		switch {
		case !in.flag("flashboot"):
			u.patch["flashboot"] = "OFF"
		case now != "PRIORITY_FLASHBOOT":
			u.patch["flashboot"] = "FLASHBOOT"
		}
	}
	if in.has("dataCenterIds") {
		u.patch["dataCenterIds"] = translate.List(u.centres())
	}
	if in.has("networkVolumeId") || in.has("networkVolumeIds") {
		u.patch["networkVolumes"] = translate.List(in.volumes())
		u.note.NetworkVolumeID, u.note.NetworkVolumeIDs = in.text("networkVolumeId"), in.texts("networkVolumeIds")
	}
	return nil
}

// template applies a template once, which is all v2 does. The virtual template
// of the endpoint itself changes nothing: clients write back what they read.
func (u *endpointUpdate) template(ctx context.Context) error {
	id := u.body.text("templateId")
	if id == "" || id == legacy.VirtualPrefix+u.id {
		return nil
	}
	u.templateID = id
	if legacy.IsVirtual(id) {
		source, err := u.Template(ctx, legacy.GivenTemplate("read template", id), id)
		if err != nil {
			return err
		}
		source.CopyInto(v2.ContainerOf(u.patch))
		u.origin = source.Origin()
		return nil
	}
	u.patch["templateId"] = u.ResolveTemplate(ctx, id)
	return nil
}

// workers keeps the bounds in order: v1 let a lower maximum pull the minimum
// down.
func (u *endpointUpdate) workers(context.Context) error {
	in, workers := u.body, map[string]any{}
	low, high := translate.Whole(u.current, "workers", "min"), translate.Whole(u.current, "workers", "max")
	hasMin, hasMax := in.has("workersMin"), in.has("workersMax")
	newMin, newMax := in.whole("workersMin", low), in.whole("workersMax", high)
	switch {
	case hasMax && !hasMin && newMax < low:
		newMin, hasMin = newMax, true
	case hasMin && newMin > newMax:
		return bad("workersMin: must be at most workersMax (%d)", newMax)
	}
	if hasMin {
		workers["min"] = translate.Int(newMin)
	}
	if hasMax {
		workers["max"] = translate.Int(newMax)
	}
	u.idle(workers)
	if len(workers) > 0 {
		u.patch["workers"] = workers
	}
	return nil
}

// idle keeps the idle timeout over changes of the scaler, which v2 does not.
func (u *endpointUpdate) idle(workers map[string]any) {
	current := translate.Whole(u.current, "workers", "idleTimeout")
	if current > 0 {
		u.note.IdleTimeout = current
	}
	asked := u.body.whole("idleTimeout", u.note.IdleTimeout)
	u.note.IdleTimeout = asked
	if asked > 0 && !u.byRequestCount() && (u.body.has("idleTimeout") || current == 0 && u.body.has("scalerType")) {
		workers["idleTimeout"] = translate.Int(asked)
	}
}

// byRequestCount reports whether the endpoint will be a queue scaled by request
// count, for which v2 takes no idle timeout.
func (u *endpointUpdate) byRequestCount() bool {
	kind := translate.Text(u.current, "type")
	return u.scalerType() == "REQUEST_COUNT" && (kind == "QUEUE" || kind == "")
}

func (u *endpointUpdate) scalerType() string {
	return u.body.textOr("scalerType", translate.Text(u.current, "scaling", "type"))
}

// scaling sends the whole union: the half that is not given is the current one.
func (u *endpointUpdate) scaling(context.Context) error {
	in := u.body
	if !in.has("scalerType") && !in.has("scalerValue") {
		return nil
	}
	kind := u.scalerType()
	value := in.whole("scalerValue", defaultScaler)
	if !in.has("scalerValue") && kind == translate.Text(u.current, "scaling", "type") {
		return nil // nothing changes
	}
	if kind == "" {
		kind = scalers[0]
	}
	u.patch["scaling"] = scaling(kind, value)
	return nil
}

// gpu sends the selection whole and clears one CUDA constraint when the other is
// set: v2 takes only one.
func (u *endpointUpdate) gpu(ctx context.Context) error {
	in, gpu := u.body, map[string]any{}
	if len(in.texts("gpuTypeIds")) > 0 {
		if err := u.selectTypes(ctx, gpu); err != nil {
			return err
		}
		u.note.GPUTypeIDs = translate.Unique(in.texts("gpuTypeIds"))
		u.note.GPUIDs = ""
	}
	if in.has("gpuCount") {
		gpu["count"] = translate.Int(in.whole("gpuCount", 1))
	}
	versions, floor, err := u.cuda()
	if err != nil {
		return err
	}
	if in.has("allowedCudaVersions") {
		gpu["allowedCudaVersions"] = translate.List(versions)
		if len(versions) > 0 && translate.Text(u.current, "gpu", "minCudaVersion") != "" {
			gpu["minCudaVersion"] = ""
		}
	}
	if in.has("minCudaVersion") {
		gpu["minCudaVersion"] = floor
		if floor != "" && len(translate.Items(u.current, "gpu", "allowedCudaVersions")) > 0 {
			gpu["allowedCudaVersions"] = []any{}
		}
	}
	if len(gpu) > 0 && len(translate.Items(u.current, "cpu")) == 0 {
		u.patch["gpu"] = gpu
	}
	return nil
}

// cpu replaces the list; the half that is not given is the current one.
func (u *endpointUpdate) cpu(ctx context.Context) error {
	in := u.body
	if len(in.texts("cpuFlavorIds")) == 0 && !in.has("vcpuCount") {
		return nil
	}
	current := translate.Items(u.current, "cpu")
	if len(in.texts("cpuFlavorIds")) == 0 {
		in["cpuFlavorIds"] = legacy.IDs(current)
	}
	if !in.has("vcpuCount") && len(current) > 0 {
		in["vcpuCount"] = translate.Whole(current[0], "vcpuCount")
	}
	list, err := u.cpuList(ctx)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(list, current, func(a, b any) bool {
		return translate.Text(a, "id") == translate.Text(b, "id") && translate.Whole(a, "vcpuCount") == translate.Whole(b, "vcpuCount")
	}) {
		u.patch["cpu"] = list
	}
	return nil
}
