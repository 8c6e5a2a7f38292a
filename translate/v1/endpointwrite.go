package v1

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// Default and maximum of the idle timeout of endpoints, in seconds.
const (
	defaultIdle = 5
	maxIdle     = 3600
)

var (
	scalers = []string{v2.ByDelay, v2.ByCount}

	// endpointCreateForm is EndpointCreateInput and endpointUpdateForm is EndpointUpdateInput of the description. The
	// defaults of the latter do not apply.
	endpointCreateForm = append(form{{name: "templateId", required: true}, {name: "computeType", enum: computes}}, endpointFields...)
	endpointUpdateForm = append(form{{name: "templateId"}}, endpointFields...)

	endpointFields = form{
		{name: "name", maxLen: maxName},
		{name: "gpuTypeIds", v2: "gpu gpu.pools gpu.excludedTypes", kind: kindStrings},
		{name: "gpuCount", v2: "gpu.count", kind: kindInteger, atLeast: 1},
		{name: "allowedCudaVersions", v2: "gpu.allowedCudaVersions", kind: kindStrings},
		{name: "minCudaVersion", v2: "gpu.minCudaVersion", keepEmpty: true},
		{name: "cpuFlavorIds", v2: "cpu", kind: kindStrings},
		{name: "vcpuCount", v2: "cpu.vcpuCount", kind: kindInteger, atLeast: anyInt},
		{name: "workersMin", v2: "workers.min", kind: kindInteger},
		{name: "workersMax", v2: "workers.max", kind: kindInteger},
		{name: "idleTimeout", v2: "workers.idleTimeout", kind: kindInteger, atLeast: 1, atMost: maxIdle},
		{name: "scalerType", v2: "scaling.type", enum: scalers},
		{name: "scalerValue", v2: "scaling", kind: kindInteger, atLeast: 1},
		{name: "executionTimeoutMs", v2: "timeout", kind: kindInteger},
		{name: "flashboot", kind: kindBoolean},
		{name: "dataCenterIds", kind: kindStrings},
		{name: "networkVolumeId", keepEmpty: true},
		{name: "networkVolumeIds", v2: "networkVolumes", kind: kindStrings},
	}
)

func createEndpoint(ctx context.Context, r *request) (*reply, error) {
	in, w := r.body, r.endpointInput()
	w.IdleTimeout = legacy.Given(w.IdleTimeout.Or(defaultIdle))
	w.FlashbootOn = legacy.Given(w.FlashbootOn.Or(true))
	w.CPU = in.wantsCPU()
	endpoint, note, err := r.CreateEndpoint(ctx, w)
	if err != nil {
		return nil, err
	}
	return ok(r.endpointNow(ctx, endpoint, note)), nil
}

// updateEndpoint serves PATCH and POST .../update.
func updateEndpoint(ctx context.Context, r *request) (*reply, error) {
	endpoint, note, err := r.UpdateEndpoint(ctx, r.id, r.endpointInput())
	if err != nil {
		return nil, err
	}
	return ok(r.endpointNow(ctx, endpoint, note)), nil
}

// endpointInput reads the endpoint settings that both bodies share.
func (r *request) endpointInput() *legacy.EndpointInput {
	in := r.body
	w := &legacy.EndpointInput{
		Name: optional[string](in, "name"), TemplateID: optional[string](in, "templateId"),
		GPUs: optional[[]string](in, "gpuTypeIds"), GPUCount: optional[int64](in, "gpuCount"),
		CUDAVersions: optional[[]string](in, "allowedCudaVersions"), MinCUDA: optional[string](in, "minCudaVersion"),
		WorkersMin: optional[int64](in, "workersMin"), WorkersMax: optional[int64](in, "workersMax"),
		IdleTimeout: optional[int64](in, "idleTimeout"),
		Scaler:      optional[string](in, "scalerType"), ScalerValue: optional[int64](in, "scalerValue"),
		TimeoutMS: optional[int64](in, "executionTimeoutMs"), FlashbootOn: optional[bool](in, "flashboot"),
		CPU: len(in.texts("cpuFlavorIds")) > 0 || in.has("vcpuCount"), Hooks: endpointHooks{r},
	}
	if in.has("networkVolumeId") || in.has("networkVolumeIds") {
		w.Volumes = legacy.Given(translate.Unique(append([]string{in.text("networkVolumeId")}, in.texts("networkVolumeIds")...)))
	}
	return w
}

// endpointHooks implements legacy.EndpointHooks for an endpoint body.
type endpointHooks struct{ *request }

// Places implements legacy.EndpointHooks.
func (r endpointHooks) Places(context.Context) (w legacy.Optional[[]string], err error) {
	if r.body.has("dataCenterIds") {
		w = legacy.Given(r.centres())
	}
	return w, nil
}

// Remember implements legacy.EndpointHooks.
func (r endpointHooks) Remember(note *translate.EndpointNote, _ v2.Endpoint) {
	in := r.body
	if types := in.texts("gpuTypeIds"); len(types) > 0 {
		note.GPUTypeIDs, note.GPUIDs = translate.Unique(types), ""
	}
	if in.has("networkVolumeId") || in.has("networkVolumeIds") {
		note.NetworkVolumeID, note.NetworkVolumeIDs = in.text("networkVolumeId"), in.texts("networkVolumeIds")
	}
}

// maxEndpointFlavours is the number of flavours of an endpoint if the caller names none.
const maxEndpointFlavours = 3

// CPUs implements legacy.EndpointHooks. It returns one instance for each flavour, in order. Settings that are not given
// stay unchanged.
func (r endpointHooks) CPUs(ctx context.Context, now v2.Endpoint) ([]v2.CPU, error) {
	current := now.CPUs()
	if len(current) > 0 && !r.body.has("vcpuCount") {
		r.body["vcpuCount"] = current[0].VCPUs
	}
	if len(current) > 0 && len(r.body.texts("cpuFlavorIds")) == 0 {
		var flavours []string
		for _, c := range current {
			flavours = append(flavours, c.ID)
		}
		r.body["cpuFlavorIds"] = flavours
	}
	vcpus, err := r.vcpus()
	if err != nil {
		return nil, err
	}
	chosen, _, err := r.flavours(ctx, "SERVERLESS", "serverlessPerVcpu", vcpus, maxEndpointFlavours)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return nil, bad("cpuFlavorIds: none of the flavours is available with %d vCPUs", vcpus)
	}
	var list []v2.CPU
	for _, id := range chosen {
		list = append(list, v2.CPU{ID: id, VCPUs: vcpus})
	}
	return list, nil
}
