package v1

import (
	"context"
	"slices"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// podIncludes are the include flags of pod reads.
type podIncludes struct{ machine, volume, template, workers bool }

func (r *request) podIncludes() podIncludes {
	r.query.flag("includeSavingsPlans") // there are none; only its spelling is checked
	return podIncludes{
		machine:  r.query.flag("includeMachine"),
		volume:   r.query.flag("includeNetworkVolume"),
		template: r.query.flag("includeTemplate"),
		workers:  r.query.flag("includeWorkers"),
	}
}

// podFilter is the query of GET /v1/pods. v2 filters nothing, so all of it is
// done here.
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

// matches reports whether a pod passes every filter that was set.
func (f podFilter) matches(p *shownPod) bool {
	family := "GPU"
	if p.isCPU() {
		family = "CPU"
	}
	equal := func(want, have string) bool { return want == "" || have == want }
	among := func(want []string, have string) bool { return len(want) == 0 || slices.Contains(want, have) }
	return equal(f.compute, family) &&
		equal(f.status, p.status()) && equal(f.endpoint, p.endpointID) && equal(f.id, translate.Text(p.pod, "id")) &&
		equal(f.image, translate.Text(p.pod, "image")) && equal(f.name, translate.Text(p.pod, "name")) &&
		equal(f.volume, volumeOf(p.pod)) && equal(f.template, templateOf(p.pod, p.note)) &&
		among(f.flavours, translate.Text(p.pod, "cpu", "id")) &&
		among(f.centres, translate.Text(p.pod, "dataCenterId")) && among(f.types, p.gpuTypeID())
}

func listPods(ctx context.Context, r *request) (*reply, error) {
	include, filter := r.podIncludes(), r.podFilter()
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	listed, err := r.Pods(ctx, nil)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(listed))
	for i, pod := range listed {
		ids[i] = translate.Text(pod, "id")
	}
	notes, err := translate.FindNotes[translate.PodNote](ctx, r.Dialogue, translate.KindPod, ids)
	if err == nil {
		translate.AddNotes(ctx, r.Dialogue, translate.KindPod, firstSight(listed, notes))
	}
	types := r.cards(ctx, listed...)
	extras := r.podExtras(ctx, include, listed, notes)
	pods := []any{}
	for _, pod := range listed {
		id := translate.Text(pod, "id")
		if translate.Text(pod, "status") == translate.Terminated {
			continue // v1 did not list them either
		}
		note := notes[id]
		view := podView{note: note, types: types, machine: include.machine}
		view.volume, view.template = extras.volumes[volumeOf(pod)], extras.templates[templateOf(pod, note)]
		if shown := r.pod(pod, view); filter.matches(shown) {
			pods = append(pods, shown)
		}
	}
	if include.workers {
		workers, err := r.allWorkers(ctx, filter.endpoint)
		if err != nil {
			return nil, err
		}
		pods = append(pods, slices.DeleteFunc(workers, func(w any) bool { return !filter.matches(w.(*shownPod)) })...)
	}
	return ok(pods), nil
}

// firstSight notes the GPU types of the pods nothing is known of, which were made
// elsewhere: billing asks for them after the pods are gone.
func firstSight(pods []any, known map[string]translate.PodNote) map[string]translate.PodNote {
	fresh := make(map[string]translate.PodNote)
	for _, pod := range pods {
		id := translate.Text(pod, "id")
		if _, seen := known[id]; seen || id == "" || translate.Text(pod, "status") == translate.Terminated {
			continue
		}
		note := translate.PodNote{GPUTypeID: translate.Text(pod, "gpu", "id"), GPUCount: translate.Whole(pod, "gpu", "count")}
		if translate.Members(pod, "cpu") != nil {
			note.GPUTypeID = cpuPods
		}
		fresh[id] = note
	}
	return fresh
}

// podExtras are the volumes and templates to show inside pods, by id.
type podExtras struct{ volumes, templates map[string]any }

// podExtras reads volumes and templates once as lists. Templates that are not
// the account's own are read one by one. What cannot be read is left out with a
// warning.
func (r *request) podExtras(ctx context.Context, include podIncludes, pods []any, notes map[string]translate.PodNote) podExtras {
	extras := podExtras{volumes: map[string]any{}, templates: map[string]any{}}
	if include.volume {
		volumes, err := r.Volumes(ctx)
		if err != nil {
			r.Warn("includeNetworkVolume", "the network volumes could not be read")
		}
		for _, volume := range volumes {
			extras.volumes[translate.Text(volume, "id")] = networkVolume(volume)
		}
	}
	if include.template {
		var wanted []string
		for _, pod := range pods {
			wanted = append(wanted, templateOf(pod, notes[translate.Text(pod, "id")]))
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

// workersOf lists the workers of endpoints by endpoint id. What cannot be read
// is left out with a warning.
func (r *request) workersOf(ctx context.Context, endpoints []string) map[string][]any {
	types := r.gpuTypes(ctx)
	var mu sync.Mutex
	found := make(map[string][]any, len(endpoints))
	r.Each(ctx, len(endpoints), func(ctx context.Context, i int) {
		id := endpoints[i]
		listed, err := r.Workers(ctx, id)
		if err != nil {
			r.Warn("includeWorkers", "the workers of "+id+" could not be read")
			return
		}
		workers := []any{}
		for _, worker := range listed {
			if translate.Text(worker, "id") != "" {
				workers = append(workers, r.worker(worker, id, types))
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
	id := r.param("podId")
	pod, err := r.Pod(ctx, id)
	if legacy.IsMissing(err) && include.workers {
		return r.getWorker(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return ok(r.podWith(ctx, pod.Members, include, "")), nil
}

// getWorker looks for an id among the serverless workers, which v1 knew as pods.
func (r *request) getWorker(ctx context.Context, id string) (*reply, error) {
	workers, err := r.allWorkers(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, worker := range workers {
		if translate.Text(worker.(*shownPod).pod, "id") == id {
			return ok(worker), nil
		}
	}
	return nil, &fault{status: 404, text: "pod not found"}
}

// podWith writes one pod with what was asked to be included.
func (r *request) podWith(ctx context.Context, pod any, include podIncludes, intent string) *shownPod {
	id := translate.Text(pod, "id")
	note, _, _ := translate.LoadNote[translate.PodNote](ctx, r.Dialogue, r.Key(translate.KindPod, id))
	view := podView{note: note, types: r.cards(ctx, pod), machine: include.machine, intent: intent}
	if volumeID := volumeOf(pod); include.volume && volumeID != "" {
		if volume, err := r.Volume(ctx, volumeID); err == nil {
			view.volume = networkVolume(volume)
		} else {
			r.Warn("includeNetworkVolume", "the network volume could not be read")
		}
	}
	if templateID := templateOf(pod, note); include.template && templateID != "" {
		view.template = r.templatesByID(ctx, []string{templateID})[templateID]
	}
	return r.pod(pod, view)
}
