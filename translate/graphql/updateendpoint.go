package graphql

import (
	"context"
	"maps"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// update changes an endpoint. What is left out stays as it is.
func (s *endpointSave) update(ctx context.Context, id string) (any, error) {
	now, err := s.x.fetch(ctx, "getEndpoint", id, kindEndpoint)
	if err != nil {
		return nil, err
	}
	s.now = now
	s.reset()
	a, b := s.a, s.body
	if t := a.text("type"); t != "" && (t == "LB") != (s.kind() == balanced) {
		return nil, badInput("type of an endpoint cannot be changed")
	}
	set(b, "name", a.text("name"))
	if t := a.text("templateId"); !strings.HasPrefix(t, legacy.VirtualPrefix) {
		set(b, "templateId", t)
	}
	inline := a.object("template")
	container := containerWishes(inline)
	container.Change(v2.ContainerOf(b), v2.Container{})
	if a.has("env") || inline.has("env") {
		b["env"] = mergedEnv(a, inline)
	}
	for _, step := range []func(context.Context) error{s.computeChange, s.where} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if a.text("scalerType") != "" || a.has("scalerValue") {
		s.scalingChange()
	}
	s.workersChange()
	if n, given := a.int("executionTimeoutMs"); given {
		b["timeout"] = translate.Int(n)
	}
	set(b, "flashboot", s.flashboot())
	after := now
	if len(b) > 0 {
		if after, err = s.x.change(ctx, "updateEndpoint", id, b, kindEndpoint); err != nil {
			return nil, err
		}
	}
	s.remember(ctx, id)
	return &endpoint{body: after}, nil
}

// reset puts back what the retired service reset when it was left out.
func (s *endpointSave) reset() {
	if !s.x.config().SaveEndpointReset {
		return
	}
	with := args{"workersMax": int64(3), "idleTimeout": int64(10), "scalerValue": int64(4)}
	maps.Copy(with, s.a)
	s.a = with
}

// computeChange changes GPU or CPU settings; the family is fixed.
func (s *endpointSave) computeChange(ctx context.Context) error {
	a := s.a
	current := &endpoint{body: s.now}
	instances := a.texts("instanceIds")
	if current.cpu() != (len(instances) > 0) && (len(instances) > 0 || a.text("gpuIds") != "") {
		return badInput("compute type of an endpoint cannot be changed")
	}
	if current.cpu() {
		if len(instances) == 0 {
			return nil
		}
		cpu, err := cpuList(instances)
		s.body["cpu"] = cpu
		return err
	}
	gpu := map[string]any{}
	if ids := a.text("gpuIds"); ids != "" {
		choice, err := s.x.parseSelection(ctx, ids)
		if err != nil {
			return err
		}
		gpu["pools"], gpu["excludedTypes"] = translate.List(choice.pools), translate.List(choice.excluded)
	}
	if n, _ := a.int("gpuCount"); n > 0 {
		gpu["count"] = translate.Int(n)
	}
	if err := s.cudaChange(gpu); err != nil {
		return err
	}
	if len(gpu) > 0 {
		s.body["gpu"] = gpu
	}
	return nil
}

// cudaChange sets one constraint and clears the other, which v2 would refuse
// beside it. An empty text clears its own.
func (s *endpointSave) cudaChange(gpu map[string]any) error {
	c, err := s.cuda()
	if err != nil {
		return err
	}
	listed := len(translate.Items(s.now, "gpu", "allowedCudaVersions")) > 0
	floored := translate.Text(s.now, "gpu", "minCudaVersion") != ""
	switch {
	case len(c.Versions) > 0:
		gpu["allowedCudaVersions"] = translate.List(c.Versions)
		if floored {
			gpu["minCudaVersion"] = ""
		}
	case c.Floor != "":
		gpu["minCudaVersion"] = c.Floor
		if listed {
			gpu["allowedCudaVersions"] = []any{}
		}
	default:
		if s.a.has("allowedCudaVersions") && listed {
			gpu["allowedCudaVersions"] = []any{}
		}
		if s.a.has("minCudaVersion") && floored {
			gpu["minCudaVersion"] = ""
		}
	}
	return nil
}

// scalingChange sends the scaler whole, as v2 wants it, the missing half from
// the endpoint.
func (s *endpointSave) scalingChange() {
	current := &endpoint{body: s.now}
	typ := orElse(current.text("scaling", "type"), scaleByDelay)
	value := int64(4)
	if wanted := s.a.text("scalerType"); wanted == "" || wanted == typ {
		value = max(current.scalerValue(), 1)
	}
	s.scaling(typ, value)
}

// workersChange sends the bounds that change. A maximum below the minimum there
// is takes the minimum down with it.
func (s *endpointSave) workersChange() {
	w := map[string]any{}
	least, hasLeast := s.a.int("workersMin")
	most, hasMost := s.a.int("workersMax")
	if hasLeast {
		w["min"] = translate.Int(least)
	}
	if hasMost {
		w["max"] = translate.Int(most)
		if !hasLeast && most < translate.Whole(s.now, "workers", "min") {
			w["min"] = translate.Int(most)
		}
	}
	if idle, given := s.a.int("idleTimeout"); given && idle > 0 && !s.counted() {
		w["idleTimeout"] = translate.Int(idle)
	}
	if len(w) > 0 {
		s.body["workers"] = w
	}
}
