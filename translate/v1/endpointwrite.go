package v1

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// The idle timeout of endpoints in seconds, by default and at most.
const (
	defaultIdle = 5
	maxIdle     = 3600
)

var (
	scalers = []string{v2.ByDelay, v2.ByCount}

	// endpointCreateForm is EndpointCreateInput, endpointUpdateForm
	// EndpointUpdateInput, whose defaults do not apply.
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
	in, w := r.body, r.endpointWishes()
	w.IdleTimeout = legacy.Given(w.IdleTimeout.Or(defaultIdle))
	w.FlashbootOn = legacy.Given(w.FlashbootOn.Or(true))
	isCPU := len(in.texts("cpuFlavorIds")) > 0 && len(in.texts("gpuTypeIds")) == 0
	if in.has("computeType") {
		isCPU = in.text("computeType") == "CPU"
	}
	w.CPU = isCPU
	endpoint, note, err := r.CreateEndpoint(ctx, w)
	if err != nil {
		return nil, err
	}
	return ok(r.endpointNow(ctx, endpoint, note)), nil
}

// updateEndpoint serves PATCH and POST .../update.
func updateEndpoint(ctx context.Context, r *request) (*reply, error) {
	endpoint, note, err := r.UpdateEndpoint(ctx, r.id, r.endpointWishes())
	if err != nil {
		return nil, err
	}
	return ok(r.endpointNow(ctx, endpoint, note)), nil
}

// endpointWishes reads the wishes that both bodies have for an endpoint.
func (r *request) endpointWishes() *legacy.EndpointWishes {
	in := r.body
	w := &legacy.EndpointWishes{
		Name: wish[string](in, "name"), TemplateID: wish[string](in, "templateId"),
		GPUs: wish[[]string](in, "gpuTypeIds"), GPUCount: wish[int64](in, "gpuCount"),
		CUDAVersions: wish[[]string](in, "allowedCudaVersions"), MinCUDA: wish[string](in, "minCudaVersion"),
		WorkersMin: wish[int64](in, "workersMin"), WorkersMax: wish[int64](in, "workersMax"), IdleTimeout: wish[int64](in, "idleTimeout"),
		Scaler: wish[string](in, "scalerType"), ScalerValue: wish[int64](in, "scalerValue"),
		TimeoutMS: wish[int64](in, "executionTimeoutMs"), FlashbootOn: wish[bool](in, "flashboot"),
		CPU: len(in.texts("cpuFlavorIds")) > 0 || in.has("vcpuCount"), Input: endpointInput{r},
	}
	if in.has("networkVolumeId") || in.has("networkVolumeIds") {
		w.Volumes = legacy.Given(translate.Unique(append([]string{in.text("networkVolumeId")}, in.texts("networkVolumeIds")...)))
	}
	return w
}

// endpointInput is a body about an endpoint.
type endpointInput struct{ *request }

// Places implements legacy.EndpointInput.
func (r endpointInput) Places(context.Context) (w legacy.Wish[[]string], err error) {
	if r.body.has("dataCenterIds") {
		w = legacy.Given(r.centres())
	}
	return w, nil
}

// Remember implements legacy.EndpointInput.
func (r endpointInput) Remember(note *translate.EndpointNote, _ v2.Endpoint) {
	in := r.body
	if types := in.texts("gpuTypeIds"); len(types) > 0 {
		note.GPUTypeIDs, note.GPUIDs = translate.Unique(types), ""
	}
	if in.has("networkVolumeId") || in.has("networkVolumeIds") {
		note.NetworkVolumeID, note.NetworkVolumeIDs = in.text("networkVolumeId"), in.texts("networkVolumeIds")
	}
}

// maxEndpointFlavours is how many flavours an endpoint gets when none are named.
const maxEndpointFlavours = 3

// CPUs implements legacy.EndpointInput: one instance for each flavour, in order; settings that are not given
// stay.
func (r endpointInput) CPUs(ctx context.Context, now v2.Endpoint) ([]v2.CPU, error) {
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
		return nil, bad("cpuFlavorIds: no flavour is available with vcpuCount %d", vcpus)
	}
	var list []v2.CPU
	for _, id := range chosen {
		list = append(list, v2.CPU{ID: id, VCPUs: vcpus})
	}
	return list, nil
}
