package v1

import (
	"context"
	"slices"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// podIncludes holds the include flags of pod reads.
type podIncludes struct{ machine, volume, template, workers bool }

func (r *request) podIncludes() podIncludes {
	r.query.flag("includeSavingsPlans") // v2 has no savings plans; the value is only validated
	return podIncludes{
		machine:  r.query.flag("includeMachine"),
		volume:   r.query.flag("includeNetworkVolume"),
		template: r.query.flag("includeTemplate"),
		workers:  r.query.flag("includeWorkers"),
	}
}

// podFilter holds the filters of GET /v1/pods. v2 has no filters, so they are applied here.
type podFilter struct {
	compute, status, endpoint, id, image, name, volume, template string
	flavours, centres, types                                     []string
}

func (r *request) podFilter() podFilter {
	q := &r.query
	return podFilter{
		compute: q.text("computeType", computes...), status: q.text("desiredStatus", translate.Running, translate.Exited, translate.Terminated),
		endpoint: q.text("endpointId"), id: q.text("id"), image: q.text("imageName"), name: q.text("name"),
		volume: q.text("networkVolumeId"), template: q.text("templateId"),
		flavours: q.texts("cpuFlavorId"), centres: q.texts("dataCenterId"), types: q.texts("gpuTypeId"),
	}
}

// matches reports whether a pod passes every filter.
func (f podFilter) matches(p *shownPod) bool {
	equal := func(want string, have func() string) bool { return want == "" || have() == want }
	among := func(want []string, have func() string) bool { return len(want) == 0 || slices.Contains(want, have()) }
	return equal(f.compute, p.family) &&
		equal(f.status, p.status) && equal(f.endpoint, func() string { return p.endpointID }) && equal(f.id, p.ID) &&
		equal(f.image, p.Image) && equal(f.name, p.Name) &&
		equal(f.volume, p.VolumeID) && equal(f.template, p.templateID) &&
		among(f.flavours, p.CPU) &&
		among(f.centres, p.DataCenter) && among(f.types, p.gpuTypeID)
}

func listPods(ctx context.Context, r *request) (*reply, error) {
	include, filter := r.podIncludes(), r.podFilter()
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	listed, err := r.Pods(ctx)
	if err != nil {
		return nil, err
	}
	pods := &shownPods{listed: listed, filter: filter, notes: r.PodNotes(ctx, listed)}
	pods.one = *r.pod(nil, podView{gpus: r.gpuCatalog(ctx, listed...), machine: include.machine})
	pods.extras = r.podExtras(ctx, include, listed, pods.notes)
	if include.workers {
		if pods.workers, err = r.allWorkers(ctx, filter.endpoint); err != nil {
			return nil, err
		}
	}
	return ok(pods), nil
}

// podExtras holds the volumes and templates to include in pods, by id.
type podExtras struct{ volumes, templates map[string]any }

// podExtras reads volumes and templates as lists, and templates of other accounts individually. If one of them cannot be read, it is
// omitted with a warning.
func (r *request) podExtras(ctx context.Context, include podIncludes, pods []any, notes map[string]translate.PodNote) podExtras {
	extras := podExtras{volumes: map[string]any{}, templates: map[string]any{}}
	if include.volume {
		volumes, err := r.Volumes(ctx)
		if err != nil {
			r.Warn("includeNetworkVolume", "cannot read the network volumes")
		}
		for _, volume := range volumes {
			extras.volumes[translate.Text(volume, "id")] = networkVolume(volume)
		}
	}
	if include.template {
		var wanted []string
		for _, body := range pods {
			pod := v2.PodOf(body)
			wanted = append(wanted, legacy.TemplateIDOfPod(pod, notes[pod.ID()]))
		}
		extras.templates = r.templatesByID(ctx, translate.Unique(wanted))
	}
	return extras
}

// allWorkers lists the workers of all endpoints, or of one, as pods.
func (r *request) allWorkers(ctx context.Context, endpointID string) ([]any, error) {
	endpoints, err := r.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	wanted := legacy.IDs(endpoints)
	if endpointID != "" {
		wanted = slices.DeleteFunc(wanted, func(id string) bool { return id != endpointID })
	}
	found := r.workersOf(ctx, wanted)
	var all []any
	for _, id := range wanted {
		all = append(all, found[id]...)
	}
	return all, nil
}

// workersOf lists the workers of endpoints by endpoint id. If the workers of an endpoint cannot be read, they are omitted with a warning.
func (r *request) workersOf(ctx context.Context, endpoints []string) map[string][]any {
	gpus := newGPUCatalog(r.gpuTypes(ctx))
	var mu sync.Mutex
	found := make(map[string][]any, len(endpoints))
	r.Each(ctx, len(endpoints), func(ctx context.Context, i int) {
		id := endpoints[i]
		listed, err := r.Workers(ctx, id)
		if err != nil {
			r.Warn("includeWorkers", "cannot read the workers of "+id)
			return
		}
		workers := []any{}
		for _, worker := range listed {
			if translate.Text(worker, "id") != "" {
				workers = append(workers, r.worker(worker, id, gpus))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		found[id] = workers
	})
	return found
}

func getPod(ctx context.Context, r *request) (*reply, error) {
	include := r.podIncludes()
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	pod, err := r.Pod(ctx, r.id)
	if legacy.IsMissing(err) && include.workers {
		return r.getWorker(ctx, r.id)
	}
	if err != nil {
		return nil, err
	}
	return ok(r.podWith(ctx, pod, include, "")), nil
}

// getWorker looks for an id among the serverless workers, which v1 presented as pods.
func (r *request) getWorker(ctx context.Context, id string) (*reply, error) {
	workers, err := r.allWorkers(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, worker := range workers {
		if worker.(*shownPod).ID() == id {
			return ok(worker), nil
		}
	}
	return nil, &fault{status: 404, text: "pod not found"}
}

// podWith returns one pod with the requested includes.
func (r *request) podWith(ctx context.Context, pod v2.Pod, include podIncludes, intent string) *shownPod {
	note, _, _ := r.PodNote(ctx, pod.ID())
	shown := r.pod(pod.Members, podView{note: note, gpus: r.gpuCatalog(ctx, pod.Members), machine: include.machine, intent: intent})
	if id := shown.VolumeID(); include.volume && id != "" {
		if volume, err := r.Volume(ctx, id); err == nil {
			shown.volume = networkVolume(volume)
		} else {
			r.Warn("includeNetworkVolume", "cannot read the network volume")
		}
	}
	if id := legacy.TemplateIDOfPod(pod, note); include.template && id != "" {
		shown.template = r.templatesByID(ctx, []string{id})[id]
	}
	return shown
}
