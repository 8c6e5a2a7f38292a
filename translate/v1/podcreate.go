package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

func createPod(ctx context.Context, r *request) (*reply, error) {
	want, err := r.podCreate()
	if err != nil {
		return nil, err
	}
	made, err := r.CreatePod(ctx, want)
	if err != nil {
		return nil, err
	}
	view := podView{note: made.Note, gpus: newGPUCatalog(made.Types)}
	if made.Types == nil {
		view.gpus = r.gpuCatalog(ctx, made.Members)
	}
	return &reply{status: http.StatusCreated, body: r.pod(made.Members, view)}, nil
}

// podCreate reads the body of POST /v1/pods with v1's defaults. It returns an error for settings that are no longer available and for
// settings that contradict each other.
func (r *request) podCreate() (*legacy.PodCreate, error) {
	in := r.body
	args := in.text("dockerArgs")
	switch {
	case in.flag("interruptible"):
		return nil, bad("create pod: Spot pods are no longer offered")
	case in.text("templateId") == "" && in.text("imageName") == "":
		return nil, bad("imageName is required")
	case args != "" && (len(in.texts("dockerStartCmd")) > 0 || len(in.texts("dockerEntrypoint")) > 0):
		return nil, bad("dockerArgs cannot be combined with dockerStartCmd or dockerEntrypoint")
	}
	body, err := json.Marshal(r.in.Body) // as in earlier versions, so that a repeat after an upgrade is recognized
	if err != nil {
		return nil, err
	}
	want := &legacy.PodCreate{
		PodInput: r.podInput(), Template: in.text("templateId"), NetworkVolume: in.text("networkVolumeId"),
		FingerprintText: string(body), Locked: in.flag("locked"), GlobalNetworking: in.flag("globalNetworking"),
	}
	if args != "" {
		want.Args, want.Entrypoint, want.Cmd = legacy.Given(args), legacy.Optional[[]string]{}, legacy.Optional[[]string]{}
	}
	if err := r.placement(&want.Placement); err != nil {
		return nil, err
	}
	want.Name = legacy.Given(cmp.Or(in.text("name"), defaultName))
	if want.Template == "" {
		r.defaults(want)
	}
	return want, nil
}

// defaults sets v1's defaults for pods without a template. v1 started SSH if port 22 was open; v2 needs a separate
// setting.
func (r *request) defaults(want *legacy.PodCreate) {
	if !want.CPU {
		if want.Disk.Value() == 0 {
			want.Disk = legacy.Given[int64](defaultDisk)
		}
		want.VolumeGB = legacy.Given(want.VolumeGB.Or(defaultVolume))
	}
	want.Ports = legacy.Given(want.Ports.Or(defaultPorts))
	if slices.Contains(want.Ports.Value(), "22/tcp") {
		want.PassThrough.Set("startSsh", true)
	}
}

// podInput reads the settings that the bodies of pods and templates share.
func (r *request) podInput() legacy.PodInput {
	in := r.body
	return legacy.PodInput{
		Container: containerInput(in), PassThrough: r.form.plain(in),
		Name: optional[string](in, "name"), MountPath: optional[string](in, "volumeMountPath"), VolumeGB: optional[int64](in, "volumeInGb"),
	}
}

// placement reads where the pod may be placed. It warns about settings that v2 does not support.
func (r *request) placement(p *legacy.Placement) error {
	in := r.body
	cloud := cmp.Or(in.text("cloudType"), "SECURE")
	for _, name := range [...]string{"minDownloadMbps", "minUploadMbps", "minDiskBandwidthMBps"} {
		if in.has(name) {
			r.WarnLost(name, "ignored because this field is no longer supported")
		}
	}
	if in.flag("supportPublicIp") && cloud == "COMMUNITY" {
		r.WarnLost("supportPublicIp", "ignored because the community cloud no longer supports this field")
	}
	p.Clouds, p.DataCenters, p.Countries = []string{cloud}, r.centres(), translate.Unique(in.texts("countryCodes"))
	p.SplitDataCenters = in.text("dataCenterPriority") == "custom"
	p.CPU = in.wantsCPU()
	var err error
	if p.CPU {
		if cloud == "COMMUNITY" {
			r.WarnLost("cloudType", "CPU pods can only be placed in SECURE")
		}
		p.Types, p.TypesField, p.KeepOrder = r.flavourIDs(), "cpuFlavorIds", in.text("cpuFlavorPriority") == "custom"
		p.Count, err = r.vcpus()
		return err
	}
	p.Types, p.TypesField, p.KeepOrder = in.texts("gpuTypeIds"), "gpuTypeIds", in.text("gpuTypePriority") == "custom"
	p.Count = in.whole("gpuCount", 1)
	p.MinMemoryGB, p.MinVCPUs = max(in.whole("minRAMPerGPU", defaultRAM), 0), max(in.whole("minVCPUPerGPU", defaultVCPU), 0)
	p.CUDA, err = r.cudaConstraint()
	return err
}

// updatePod serves PATCH and POST .../update.
func updatePod(ctx context.Context, r *request) (*reply, error) {
	want := r.podInput()
	pod, err := r.UpdatePod(ctx, r.id, &want)
	return r.podReply(ctx, pod, "", err)
}

// podReply returns a pod. intent is the desiredStatus to report, or "" to derive it from the pod.
func (r *request) podReply(ctx context.Context, pod v2.Pod, intent string, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return ok(r.podWith(ctx, pod, podIncludes{}, intent)), nil
}

// podAction returns the handler of a v2 pod action.
func podAction(a legacy.Action) func(context.Context, *request) (*reply, error) {
	return func(ctx context.Context, r *request) (*reply, error) {
		pod, err := r.PerformAction(ctx, r.id, a)
		return r.podReply(ctx, pod, a.DesiredStatus(), err)
	}
}

func resetPod(ctx context.Context, r *request) (*reply, error) {
	pod, err := r.ResetPod(ctx, r.id)
	return r.podReply(ctx, pod, translate.Running, err)
}

// shortage returns the status of a capacity shortage: v1 actually sent 500, although its description has 400 for every
// refusal.
func (a *API) shortage() int {
	if a.cfg.Legacy.Answers == legacy.Strict {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// podShortage returns the fault for a pod that could not be created because no capacity is available.
func (a *API) podShortage(e *legacy.ShortageError) *fault {
	return &fault{status: a.shortage(), text: "create pod: " + textNoCapacity, detail: e.Response.Detail()}
}
