package graphql

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// saveEndpoint creates an endpoint, or updates the one with the given id.
func saveEndpoint(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	inline := a.object("template")
	if err := unsaveable(a, inline); err != nil {
		return nil, err
	}
	id := a.text("id")
	w, err := x.endpointInput(a, inline)
	if err != nil {
		return nil, err
	}
	var e v2.Endpoint
	var note translate.EndpointNote
	switch {
	case id != "":
		e, note, err = x.UpdateEndpoint(ctx, id, w)
	case a.text("templateId") == "" && inline.text("imageName") == "":
		err = badInput("templateId is required")
	default:
		forNew(&w.Container)
		w.Name = legacy.Given(cmp.Or(a.text("name"), inline.text("name")))
		e, note, err = x.CreateEndpoint(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	return &endpoint{Endpoint: e, known: &note}, nil
}

// unsaveable returns an error for settings that v2 does not support.
func unsaveable(a, t args) error {
	switch {
	case len(a.texts("modelReferences")) > 0:
		return badInput("model references are not supported")
	case len(a.texts("instanceIds")) > 0 && a.text("gpuIds") != "":
		return badInput("gpuIds and instanceIds cannot be combined")
	case t.text("startScript") != "":
		return badInput("template.startScript is not supported")
	case !slices.Contains([]string{"", "QB", "LB"}, a.text("type")):
		return badInput("type must be QB or LB")
	case !slices.Contains([]string{"", v2.ByDelay, v2.ByCount}, a.text("scalerType")):
		return badInput("scalerType must be QUEUE_DELAY or REQUEST_COUNT")
	}
	return nil
}

func (x *exchange) endpointInput(a, inline args) (*legacy.EndpointInput, error) {
	w := &legacy.EndpointInput{
		Container: containerInput(inline),
		Name:      optional[string](a, "name"), TemplateID: optional[string](a, "templateId"), MinCUDA: optional[string](a, "minCudaVersion"),
		GPUCount: optional[int64](a, "gpuCount"), WorkersMin: optional[int64](a, "workersMin"), WorkersMax: optional[int64](a, "workersMax"),
		IdleTimeout: positive(a, "idleTimeout"), Scaler: optional[string](a, "scalerType"), ScalerValue: positive(a, "scalerValue"),
		TimeoutMS: optional[int64](a, "executionTimeoutMs"), Flashboot: optional[string](a, "flashBootType"),
	}
	switch a.text("type") {
	case "LB":
		w.Type = legacy.Given(v2.LoadBalancer)
	case "QB":
		w.Type = legacy.Given(v2.Queue)
	}
	// The official SDK requests Flashboot by this suffix of the name.
	if w.Flashboot.Value() == "" && strings.HasSuffix(a.text("name"), " -fb") {
		w.Flashboot = legacy.Given(v2.FlashbootOn)
	}
	if a.has("env") || inline.has("env") { // the endpoint's variables override the template's
		w.Env = legacy.Given(variablesOf(slices.Concat(inline.list("env"), a.list("env"))))
	}
	if a.has("gpuIds") {
		w.GPUs = legacy.Given(translate.SplitList(a.text("gpuIds")))
	}
	if a.has("allowedCudaVersions") {
		w.CUDAVersions = legacy.Given(translate.SplitList(a.text("allowedCudaVersions")))
	}
	if a.has("networkVolumeId") || a.has("networkVolumeIds") {
		ids := []string{a.text("networkVolumeId")}
		for _, v := range a.list("networkVolumeIds") {
			if o, ok := v.(map[string]any); ok {
				ids = append(ids, args(o).text("networkVolumeId"))
			}
		}
		w.Volumes = legacy.Given(translate.Unique(ids))
	}
	cpus, err := instances(a)
	w.CPU, w.Hooks = len(cpus) > 0, endpointHooks{x, a, cpus}
	return w, err
}

// positive returns a number as an Optional. The number 0 becomes absent, because clients send it as a default.
func positive(a args, name string) legacy.Optional[int64] {
	if n, _ := a.int(name); n <= 0 {
		return legacy.Optional[int64]{}
	}
	return optional[int64](a, name)
}

func instances(a args) (list []v2.CPU, err error) {
	for _, id := range translate.Unique(a.texts("instanceIds")) {
		name, vcpus, ok := splitInstance(id)
		if !ok {
			return nil, badInput("instanceIds must be <flavour>-<vcpu>-<memory>")
		}
		list = append(list, v2.CPU{ID: name, VCPUs: vcpus})
	}
	return list, nil
}

// endpointHooks implements legacy.EndpointHooks for the input of saveEndpoint.
type endpointHooks struct {
	x    *exchange
	a    args
	cpus []v2.CPU
}

// CPUs implements legacy.EndpointHooks.
func (in endpointHooks) CPUs(context.Context, v2.Endpoint) ([]v2.CPU, error) { return in.cpus, nil }

// Places implements legacy.EndpointHooks. It returns the data centres that match the argument locations and meet all standards in the
// argument compliance.
func (in endpointHooks) Places(ctx context.Context) (w legacy.Optional[[]string], err error) {
	if in.a.has("locations") {
		ids, err := in.x.places(ctx, in.a.text("locations"))
		if err != nil {
			return w, err
		}
		w = legacy.Given(ids)
	}
	if list := in.a.texts("compliance"); len(list) > 0 {
		ids, err := in.x.compliantCentres(ctx, list, w.Value())
		if err == nil && len(ids) == 0 {
			err = noCapacity(0)
		}
		return legacy.Given(ids), err
	}
	return w, nil
}

// Remember implements legacy.EndpointHooks. It stores the settings that v2 does not return.
func (in endpointHooks) Remember(n *translate.EndpointNote, body v2.Endpoint) {
	a := in.a
	if text := a.text("gpuIds"); text != "" {
		n.GPUIDs, n.GPUTypeIDs = text, nil // v1's list may no longer describe the same selection
	}
	optional[string](a, "locations").Apply(func(text string) { n.Locations = text })
	if id := a.text("hubReleaseId"); id != "" {
		n.HubReleaseID = id
	}
	if name := a.object("template").text("name"); name != "" {
		n.TemplateName = name
	}
	if body.Has("networkVolumes") {
		n.NetworkVolumeIDs, n.NetworkVolumeID = body.Volumes(), ""
		if len(n.NetworkVolumeIDs) > 0 {
			n.NetworkVolumeID = n.NetworkVolumeIDs[0]
		}
	}
}
