package graphql

import (
	"context"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/translate"
)

// The clouds, and the cents by which a price may exceed deployCost: clients
// compute it with fewer digits than the catalog has.
const (
	secure        = "SECURE"
	community     = "COMMUNITY"
	costTolerance = 0.005
	defaultPath   = "/workspace"
)

// deployGPUPod runs the candidates of podFindAndDeployOnDemand: each GPU type
// in the caller's order, in each cloud that may do.
func deployGPUPod(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if err := undeployable(a); err != nil {
		return nil, err
	}
	wanted := translate.Unique(append([]string{a.text("gpuTypeId")}, a.texts("gpuTypeIdList")...))
	if len(wanted) == 0 {
		return nil, badInput("gpuTypeId is required")
	}
	d := &deployment{x: x, a: a, count: 1}
	if n, ok := a.int("gpuCount"); ok && n != 0 {
		if d.count = n; n < 0 {
			return nil, badInput("gpuCount must be at least 1")
		}
	}
	var err error
	if d.cuda, err = cudaOf(a); err != nil {
		return nil, err
	}
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	candidates, err := d.gpuCandidates(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return d.run(ctx, candidates)
}

// undeployable refuses what v2 cannot do and what would be dangerous to ignore.
func undeployable(a args) error {
	switch {
	case a.text("stopAfter") != "" || a.text("terminateAfter") != "":
		return badInput("scheduled stop is not available")
	case a.text("volumeKey") != "":
		return badInput("volumeKey: encrypted volumes are not available")
	case a.text("imageName") == "" && a.text("templateId") == "":
		return badInput("imageName is required")
	}
	return nil
}

// deployment is one create under way.
type deployment struct {
	x     *exchange
	a     args
	count int64 // GPUs, or vCPUs of a CPU pod
	cuda  cuda
	place placement
	body  map[string]any // what all candidates share
	// origin is the template that was written into the body, nil for none.
	origin *translate.Origin
}

// prepare builds the shared body and the placement.
func (d *deployment) prepare(ctx context.Context) error {
	a := d.a
	d.body = map[string]any{"name": podName(a)}
	set(d.body, "image", a.text("imageName"))
	set(d.body, "templateId", a.text("templateId"))
	set(d.body, "args", a.text("dockerArgs"))
	set(d.body, "registry", a.text("containerRegistryAuthId"))
	if n, _ := a.int("containerDiskInGb"); n > 0 {
		d.body["disk"] = translate.Int(n)
	}
	if ports := portList(a); len(ports) > 0 || a.text("templateId") == "" {
		d.body["ports"] = translate.List(ports)
	}
	if env := envOf(a.list("env")); len(env) > 0 {
		d.body["env"] = env
	}
	for _, name := range []string{"startSsh", "startJupyter"} {
		if on, given := a.bool(name); given {
			d.body[name] = on
		}
	}
	if on, _ := a.bool("globalNetwork"); on {
		d.body["globalNetworking"] = true
	}
	return d.findPlace(ctx)
}

// set adds a text that is not empty.
func set(body map[string]any, name, value string) {
	if value != "" {
		body[name] = value
	}
}

func podName(a args) string {
	if name := a.text("name"); name != "" {
		return name
	}
	if image := a.text("imageName"); image != "" {
		return path.Base(image)
	}
	return "my pod"
}

// portList joins ports and port; a bare port number is an HTTP port.
func portList(a args) []string {
	ports := translate.SplitList(a.text("ports"))
	if n, _ := a.int("port"); n > 0 {
		if p := strconv.FormatInt(n, 10) + "/http"; !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports
}

// variablesOf reads a list of pairs: the last of a key wins.
func variablesOf(list []any) map[string]string {
	env := map[string]string{}
	for _, e := range list {
		if pair, ok := e.(map[string]any); ok && args(pair).text("key") != "" {
			env[args(pair).text("key")] = args(pair).text("value")
		}
	}
	return env
}

// envOf is variablesOf as v2's object.
func envOf(list []any) map[string]any { return translate.EnvObject(variablesOf(list)) }

// clouds lists the clouds to try for each GPU type; several mean that the
// catalog decides the order.
func (d *deployment) clouds() []string {
	switch cloud := d.a.text("cloudType"); {
	case cloud == secure || cloud == community:
		return []string{cloud}
	case d.place.pinned || d.a.text("networkVolumeId") != "" || len(d.a.texts("compliance")) > 0 || d.body["globalNetworking"] != nil:
		return []string{secure}
	}
	return []string{secure, community}
}

// offer is a GPU type in one cloud.
type offer struct {
	gpu, cloud string
	entry      any // the catalog's record, nil when unknown
	level      int
}

// gpuCandidates turns GPU types into create calls, in the order of trial.
func (d *deployment) gpuCandidates(ctx context.Context, wanted []string) ([]translate.Candidate, error) {
	mounts, err := d.mounts(ctx)
	if err != nil {
		return nil, err
	}
	if mounts != nil {
		d.body["mounts"] = mounts
	}
	clouds := d.clouds()
	lists, err := d.catalog(ctx, clouds)
	switch {
	case err == nil:
		if wanted, err = d.known(ctx, wanted, lists); err != nil {
			return nil, err
		}
	case d.place.country != "" || d.ceiling() > 0:
		return nil, err // nothing else can vouch for the country or the price
	}
	var candidates []translate.Candidate
	for _, gpu := range wanted {
		for _, o := range d.offers(gpu, clouds, lists) {
			if len(candidates) == translate.MaxCandidates {
				return candidates, nil // the rest would not be tried
			}
			if c, ok := d.candidate(o); ok {
				candidates = append(candidates, c)
			}
		}
	}
	return candidates, nil
}

// catalog reads what there is in each cloud. Without it the given order holds.
func (d *deployment) catalog(ctx context.Context, clouds []string) (map[string][]any, error) {
	lists := map[string][]any{}
	for _, cloud := range clouds {
		list, err := d.x.gpus(ctx, d.query(cloud))
		if err != nil {
			return nil, err
		}
		lists[cloud] = list
	}
	return lists, nil
}

func (d *deployment) query(cloud string) translate.GPUQuery {
	q := translate.GPUQuery{Product: "POD", Count: d.count, Cloud: cloud, CUDAVersions: d.cuda.list, MinCUDA: d.cuda.floor}
	if d.place.country != "" {
		q.CountryCodes = []string{d.place.country}
	}
	return q
}

// known drops GPU types the catalog does not have. A filtered list may lack a
// type for its filter, so that one is looked up in the whole list.
func (d *deployment) known(ctx context.Context, wanted []string, lists map[string][]any) ([]string, error) {
	listed := func(id string) bool {
		for _, list := range lists {
			if translate.ByID(list, id) != nil {
				return true
			}
		}
		return false
	}
	all, readable := []any(nil), false
	if !slices.ContainsFunc(wanted, func(id string) bool { return !listed(id) }) {
		return wanted, nil
	}
	if list, err := d.x.gpus(ctx, translate.GPUQuery{}); err == nil {
		all, readable = list, true
	}
	kept := slices.DeleteFunc(slices.Clone(wanted), func(id string) bool {
		unknown := readable && !listed(id) && translate.ByID(all, id) == nil
		if unknown {
			d.x.Warn("gpuTypeIdList", "unknown GPU type "+id+" was left out")
		}
		return unknown
	})
	if len(kept) == 0 {
		return nil, badInput("GPU type not found")
	}
	return kept, nil
}

// offers orders the clouds of one GPU type: stock first, then the lower price,
// then SECURE. A cloud that does not carry the type is left out if another
// does.
func (d *deployment) offers(gpu string, clouds []string, lists map[string][]any) []offer {
	var out []offer
	for _, cloud := range clouds {
		entry := translate.ByID(lists[cloud], gpu)
		if len(clouds) > 1 && entry != nil && !carried(entry, cloud) {
			continue
		}
		out = append(out, offer{gpu, cloud, entry, translate.LevelIn(entry, d.place.centres)})
	}
	slices.SortStableFunc(out, func(a, b offer) int {
		switch {
		case a.level != b.level:
			return a.level - b.level
		case a.entry == nil || b.entry == nil:
			return 0
		case a.price() != b.price():
			if a.price() < b.price() {
				return -1
			}
			return 1
		}
		return 0
	})
	return out
}

func (o offer) price() float64 { return cloudPriceOf(o.entry, o.cloud) }

// ceiling is the most the caller will pay per hour, 0 for no bound.
func (d *deployment) ceiling() float64 {
	cost, _ := d.a.float("deployCost")
	return max(cost, 0)
}

// candidate builds the create call of one offer; false leaves it out.
func (d *deployment) candidate(o offer) (translate.Candidate, bool) {
	centres := d.place.centres
	if d.place.country != "" {
		if o.entry == nil || translate.Text(o.entry, "availability") == "NONE" {
			return translate.Candidate{}, false
		}
		there := d.place
		if named := centreIDs(o.entry); len(named) > 0 {
			there.intersect(named)
		} else {
			d.x.Warn("countryCode", "the catalog names no data center for "+o.gpu+", none is pinned")
		}
		if there.impossible() {
			return translate.Candidate{}, false
		}
		centres = there.centres
	}
	if most := d.ceiling(); most > 0 && (o.entry == nil || o.price()*float64(d.count) > most+costTolerance) {
		return translate.Candidate{}, false
	}
	gpu := map[string]any{"id": o.gpu, "count": translate.Int(d.count)}
	d.minimums(gpu)
	if len(d.cuda.list) > 0 {
		gpu["allowedCudaVersions"] = translate.List(d.cuda.list)
	} else {
		set(gpu, "minCudaVersion", d.cuda.floor)
	}
	body := maps.Clone(d.body)
	body["gpu"], body["cloud"] = gpu, o.cloud
	if len(centres) > 0 {
		body["dataCenterIds"] = translate.List(centres)
	}
	return translate.Candidate{
		Label:   o.gpu + " " + o.cloud,
		Request: &translate.Request{Operation: "createPod", Body: body, Origin: d.origin},
	}, true
}

// minimums sends the host minimums. The legacy figures are totals of the pod,
// v2's are per GPU.
func (d *deployment) minimums(gpu map[string]any) {
	if !d.x.config().GPUMinimums {
		return
	}
	for legacy, name := range map[string]string{"minVcpuCount": "minVcpuCountPerGpu", "minMemoryInGb": "minRamPerGpu"} {
		if n, _ := d.a.int(legacy); n > 0 {
			gpu[name] = translate.Int((n + d.count - 1) / d.count)
		}
	}
}

// run tries the candidates and answers with the pod.
func (d *deployment) run(ctx context.Context, candidates []translate.Candidate) (any, error) {
	out := translate.RunCandidates(ctx, d.x.Dialogue, translate.PodPlan(d.x.Dialogue, candidates))
	if out.Verdict != translate.Placed {
		return nil, outcomeFault(out, kindTemplate)
	}
	p := &pod{body: out.Response.Body, status: translate.Running, template: d.a.text("templateId")}
	translate.SaveNote(ctx, d.x.Dialogue, d.x.key(translate.KindPod, p.id()), translate.PodNote{
		TemplateID:  p.template,
		GPUTypeID:   p.text("gpu", "id"),
		GPUCount:    translate.Whole(p.body, "gpu", "count"),
		InjectedEnv: injected(p.body, d.body["env"]),
	})
	return p, nil
}

// injected lists the variables the platform may add by itself and did.
func injected(body, sent any) []string {
	var names []string
	for _, name := range []string{"JUPYTER_PASSWORD", "PUBLIC_KEY"} {
		if translate.At(body, "env", name) != nil && translate.At(sent, name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// outcomeFault says why nothing was placed. k is what a 404 is about.
func outcomeFault(out *translate.Outcome, k kind) error {
	switch {
	case out.Verdict == translate.Shortage:
		if out.Err != nil {
			return asFault(out.Err)
		}
		status := 0
		if out.Response != nil {
			status = out.Response.Status
		}
		return noCapacity(status)
	case out.Response == nil:
		return asFault(out.Err)
	}
	return refusal(out.Response, k)
}
