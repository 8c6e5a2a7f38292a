package graphql

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// saveEndpoint makes an endpoint, or changes the one with the id.
func saveEndpoint(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if err := unsaveable(a, a.object("template")); err != nil {
		return nil, err
	}
	s := &endpointSave{x: x, a: a, body: map[string]any{}}
	if a.text("id") != "" {
		return s.update(ctx, a.text("id"))
	}
	return s.create(ctx)
}

// unsaveable refuses what v2 cannot do.
func unsaveable(a, t args) error {
	switch {
	case len(a.texts("modelReferences")) > 0:
		return badInput("model references are not available")
	case len(a.texts("instanceIds")) > 0 && a.text("gpuIds") != "":
		return badInput("gpuIds and instanceIds exclude each other")
	case t.text("startScript") != "":
		return badInput("template.startScript is not available")
	case !slices.Contains([]string{"", "QB", "LB"}, a.text("type")):
		return badInput("type must be QB or LB")
	case !slices.Contains([]string{"", scaleByDelay, scaleByCount}, a.text("scalerType")):
		return badInput("scalerType must be QUEUE_DELAY or REQUEST_COUNT")
	}
	return nil
}

// endpointSave is one saveEndpoint under way.
type endpointSave struct {
	x    *exchange
	a    args
	body map[string]any
	// now is the endpoint before, nil on create.
	now any
}

func (s *endpointSave) create(ctx context.Context) (any, error) {
	a, b := s.a, s.body
	template := a.text("templateId")
	inline := a.object("template")
	if template == "" && inline.text("imageName") == "" {
		return nil, badInput("templateId is required")
	}
	b["type"] = queue
	if a.text("type") == "LB" {
		b["type"] = balanced
	}
	set(b, "templateId", template)
	container := newContainerWishes(inline)
	container.Create(v2.ContainerOf(b))
	if env := mergedEnv(a, inline); len(env) > 0 {
		b["env"] = env
	}
	if err := s.name(ctx); err != nil {
		return nil, err
	}
	if err := s.compute(ctx); err != nil {
		return nil, err
	}
	if err := s.where(ctx); err != nil {
		return nil, err
	}
	s.scaling(scaleByDelay, 4)
	s.workers(0, 3, 10)
	b["timeout"] = translate.Int(orInt(a, "executionTimeoutMs", 600000))
	b["flashboot"] = orElse(s.flashboot(), "OFF")
	made, err := s.x.Create(ctx, legacy.Creation{
		About: legacy.GivenTemplate("create endpoint", template), Call: legacy.Call("createEndpoint", "", b),
		List: "listEndpoints", Member: "endpoints", Claims: "endpoint",
	})
	if err != nil {
		return nil, err
	}
	e := &endpoint{body: any(made)}
	s.remember(ctx, e.id())
	return e, nil
}

// mergedEnv is the inline template's environment with the endpoint's over it.
func mergedEnv(a, inline args) map[string]any {
	return envOf(slices.Concat(inline.list("env"), a.list("env")))
}

func orInt(a args, name string, other int64) int64 {
	if n, given := a.int(name); given {
		return n
	}
	return other
}

// name takes the template's where none was given.
func (s *endpointSave) name(ctx context.Context) error {
	name := orElse(s.a.text("name"), s.a.object("template").text("name"))
	if id := s.a.text("templateId"); name == "" && id != "" {
		t, err := s.x.fetch(ctx, "getTemplate", id, kindTemplate)
		if err != nil {
			return err
		}
		name = translate.Text(t, "name")
	}
	if name == "" {
		return badInput("name is required")
	}
	s.body["name"] = name
	return nil
}

// compute sets the GPU pools or CPU flavours of a new endpoint.
func (s *endpointSave) compute(ctx context.Context) error {
	a := s.a
	if list := a.texts("instanceIds"); len(list) > 0 {
		cpu, err := cpuList(list)
		s.body["cpu"] = cpu
		return err
	}
	choice, err := s.x.parseSelection(ctx, a.text("gpuIds"))
	if err != nil {
		return err
	}
	count, _ := a.int("gpuCount")
	gpu := map[string]any{"pools": translate.List(choice.pools), "count": translate.Int(max(count, 1))}
	if len(choice.excluded) > 0 {
		gpu["excludedTypes"] = translate.List(choice.excluded)
	}
	c, err := s.cuda()
	if err != nil {
		return err
	}
	if len(c.Versions) > 0 {
		gpu["allowedCudaVersions"] = translate.List(c.Versions)
	} else {
		set(gpu, "minCudaVersion", c.Floor)
	}
	s.body["gpu"] = gpu
	return nil
}

// cuda reads the constraint, whose list is one comma separated string here.
func (s *endpointSave) cuda() (legacy.CUDA, error) {
	return legacy.CUDAOf(translate.SplitList(s.a.text("allowedCudaVersions")), s.a.text("minCudaVersion"))
}

func cpuList(instances []string) ([]any, error) {
	var out []any
	for _, id := range translate.Unique(instances) {
		name, vcpus, ok := splitInstance(id)
		if !ok {
			return nil, badInput("instanceIds: want <flavour>-<vcpu>-<memory>")
		}
		out = append(out, map[string]any{"id": name, "vcpuCount": translate.Int(vcpus)})
	}
	return out, nil
}

// where sets data centres and volumes, of which absent ones are left out.
func (s *endpointSave) where(ctx context.Context) error {
	a := s.a
	var centres []string
	pinned := false
	if a.has("locations") && (a.text("locations") != "" || s.now != nil) {
		ids, err := s.x.places(ctx, a.text("locations"))
		if err != nil {
			return err
		}
		s.body["dataCenterIds"] = translate.List(ids)
		centres, pinned = ids, len(ids) > 0
	}
	if list := a.texts("compliance"); len(list) > 0 {
		ids, err := s.x.compliantCentres(ctx, list)
		if err != nil {
			return err
		}
		if pinned {
			ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(centres, id) })
		}
		if len(ids) == 0 {
			return noCapacity(0)
		}
		s.body["dataCenterIds"] = translate.List(ids)
	}
	if a.has("networkVolumeId") || a.has("networkVolumeIds") {
		ids := []string{a.text("networkVolumeId")}
		for _, v := range a.list("networkVolumeIds") {
			if o, ok := v.(map[string]any); ok {
				ids = append(ids, args(o).text("networkVolumeId"))
			}
		}
		if ids = translate.Unique(ids); len(ids) > 0 || s.now != nil {
			s.body["networkVolumes"] = translate.List(ids)
		}
	}
	return nil
}

// scaling sets the scaler; typ and value are what holds where none is given.
func (s *endpointSave) scaling(typ string, value int64) {
	typ = orElse(s.a.text("scalerType"), typ)
	if s.kind() == balanced {
		typ = scaleByCount
	}
	if n, _ := s.a.int("scalerValue"); n > 0 {
		value = n
	}
	name := "queueDelay"
	if typ == scaleByCount {
		name = "requestCount"
	}
	s.body["scaling"] = map[string]any{"type": typ, name: translate.Int(value)}
}

// kind is the endpoint's type in v2.
func (s *endpointSave) kind() string {
	if t, ok := s.body["type"].(string); ok {
		return t
	}
	return orElse(translate.Text(s.now, "type"), queue)
}

// counted reports the combination for which v2 refuses an idle timeout.
func (s *endpointSave) counted() bool {
	scaling := translate.Text(any(s.body), "scaling", "type")
	return s.kind() == queue && orElse(scaling, translate.Text(s.now, "scaling", "type")) == scaleByCount
}

// workers sets the worker bounds of a new endpoint.
func (s *endpointSave) workers(least, most, idle int64) {
	least = orInt(s.a, "workersMin", least)
	w := map[string]any{
		"min": translate.Int(least),
		"max": translate.Int(orInt(s.a, "workersMax", max(least, most))),
	}
	if !s.counted() {
		w["idleTimeout"] = translate.Int(orInt(s.a, "idleTimeout", idle))
	}
	s.body["workers"] = w
}

// flashboot is the mode asked for, "" for none. The official SDK asks for it by
// the end of the name.
func (s *endpointSave) flashboot() string {
	mode := s.a.text("flashBootType")
	if mode == "" && strings.HasSuffix(s.a.text("name"), " -fb") {
		mode = "FLASHBOOT"
	}
	return mode
}

// remember stores what the caller sent and v2 does not show again.
func (s *endpointSave) remember(ctx context.Context, id string) {
	a := s.a
	s.x.rememberEndpoint(ctx, id, func(n *translate.EndpointNote) {
		if t := a.text("templateId"); t != "" && !strings.HasPrefix(t, legacy.VirtualPrefix) {
			n.TemplateID = t
		}
		if t := a.text("gpuIds"); t != "" {
			n.GPUIDs = t
			n.GPUTypeIDs = nil // v1's list may no longer be the same selection
		}
		if a.has("locations") {
			n.Locations = a.text("locations")
		}
		if t := a.text("hubReleaseId"); t != "" {
			n.HubReleaseID = t
		}
		if t, given := a.int("idleTimeout"); given && t > 0 {
			n.IdleTimeout = t
		}
		if volumes, ok := s.body["networkVolumes"]; ok {
			n.NetworkVolumeIDs = translate.Texts(volumes)
			n.NetworkVolumeID = ""
			if len(n.NetworkVolumeIDs) > 0 {
				n.NetworkVolumeID = n.NetworkVolumeIDs[0]
			}
		}
	})
}
