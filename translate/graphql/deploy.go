package graphql

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// The clouds of v2.
const (
	secure    = v2.Secure
	community = v2.Community
)

// deployGPUPod creates a pod with the first GPU type and cloud that is available.
func deployGPUPod(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if instances := a.texts("instanceIds"); len(instances) > 0 {
		if a.text("computeType") == "CPU" || a.text("gpuTypeId") == "" && len(a.texts("gpuTypeIdList")) == 0 {
			return deployCPUPod(ctx, x, in)
		}
		x.WarnLost("instanceIds", "ignored because the pod has GPUs")
	}
	want, err := x.podCreate(ctx, a)
	if err != nil {
		return nil, err
	}
	want.Types = translate.Unique(append([]string{a.text("gpuTypeId")}, a.texts("gpuTypeIdList")...))
	if want.TypesField = "gpuTypeIdList"; len(want.Types) == 0 {
		return nil, badInput("gpuTypeId is required")
	}
	count, _ := a.int("gpuCount")
	if want.Count = max(count, 1); count < 0 {
		return nil, badInput("gpuCount must be at least 1")
	}
	if want.CUDA, err = cudaOf(a); err != nil {
		return nil, err
	}
	want.MinMemoryGB, want.MinVCPUs = perGPU(a, "minMemoryInGb", want.Count), perGPU(a, "minVcpuCount", want.Count)
	want.Clouds = deployClouds(a, want)
	return x.createPod(ctx, in, want)
}

// perGPU converts a total for the pod, as callers give it, to a number per GPU.
func perGPU(a args, name string, count int64) int64 {
	n, _ := a.int(name)
	return (max(n, 0) + count - 1) / count
}

// deployClouds returns the clouds to try for each GPU type.
func deployClouds(a args, want *legacy.PodCreate) []string {
	switch cloud := a.text("cloudType"); {
	case cloud == secure || cloud == community:
		return []string{cloud}
	case len(want.DataCenters) > 0 || want.NetworkVolume != "" || want.GlobalNetworking:
		return []string{secure}
	}
	return []string{secure, community}
}

// deployCPUPod creates a CPU pod with the given instance, or with the cheapest flavour that is large enough.
func deployCPUPod(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	want, err := x.podCreate(ctx, a)
	if err != nil {
		return nil, err
	}
	if a.text("cloudType") == community {
		x.WarnLost("cloudType", "CPU pods can only be placed in SECURE")
	}
	want.CPU, want.Clouds = true, []string{secure}
	if ids := translate.Unique(append([]string{a.text("instanceId")}, a.texts("instanceIds")...)); len(ids) > 0 {
		want.TypesField, want.SkipCatalogCheck = "instanceId", true
		for _, id := range ids {
			name, vcpus, ok := splitInstance(id)
			if !ok {
				return nil, badInput("instanceId must be <flavour>-<vcpu>-<memory>")
			}
			if want.Count = cmp.Or(want.Count, vcpus); vcpus != want.Count {
				x.WarnLost("instanceIds", "skipped "+id+", which has a different number of vCPUs than the first instance")
				continue
			}
			want.Types = append(want.Types, name)
		}
	} else {
		least, _ := a.int("minVcpuCount")
		if want.Count = translate.PowerOfTwo(least); want.Count == 0 {
			return nil, noCapacity(0)
		}
		want.MemoryGB, _ = a.int("minMemoryInGb")
	}
	p, err := x.createPod(ctx, in, want)
	if legacy.IsMissing(err) && want.Template != "" && want.Image.Value() != "" {
		// The official SDK sends a default template name with every CPU pod, even if the template does not exist.
		x.Warn("templateId", "ignored because the template is unknown")
		want.Template, want.Ports = "", legacy.Given(want.Ports.Value())
		return x.createPod(ctx, in, want)
	}
	return p, err
}

// podCreate reads the arguments that both mutations share. It refuses options that v2 does not support if ignoring them
// would be harmful.
func (x *exchange) podCreate(ctx context.Context, a args) (*legacy.PodCreate, error) {
	switch {
	case a.object("savingsPlan").text("planLength") != "" || a.object("savingsPlan")["upfrontCost"] != nil &&
		a.object("savingsPlan")["upfrontCost"] != 0.0:
		return nil, badInput("savingsPlan: savings plans are not available")
	case a.text("volumeKey") != "":
		return nil, badInput("volumeKey: encrypted volumes are not available")
	case a.text("imageName") == "" && a.text("templateId") == "":
		return nil, badInput("imageName is required")
	}
	args, err := json.Marshal(map[string]any(a)) // as in earlier versions, so that a repeat after an upgrade is recognized
	if err != nil {
		return nil, err
	}
	want := &legacy.PodCreate{
		PodInput: newPodInput(a), Template: a.text("templateId"), NetworkVolume: a.text("networkVolumeId"),
		FingerprintText: string(args),
	}
	if err := mounts(a, want); err != nil {
		return nil, err
	}
	if want.StopAt, err = x.deadline(a, "stopAfter"); err != nil {
		return nil, err
	}
	if want.TerminateAt, err = x.deadline(a, "terminateAfter"); err != nil {
		return nil, err
	}
	want.KeepOrder = true
	want.GlobalNetworking, _ = a.bool("globalNetwork")
	if cost, _ := a.float("deployCost"); cost > 0 {
		want.MaxPrice = cost
	}
	return want, x.placement(ctx, a, &want.Placement)
}

// mounts reads volumeMounts. v2 supports one network volume.
func mounts(a args, want *legacy.PodCreate) error {
	for i, v := range a.list("volumeMounts") {
		m, _ := v.(map[string]any)
		id, path := args(m).text("volumeId"), args(m).text("mountPath")
		switch kind := args(m).text("volumeType"); {
		case id == "":
			continue
		case kind != "" && kind != "NETWORK_VOLUME":
			return badInput("volumeMounts[" + strconv.Itoa(i) + "]: only network volumes are available")
		case want.NetworkVolume != "" && want.NetworkVolume != id:
			return badInput("volumeMounts[" + strconv.Itoa(i) + "]: only one network volume is supported")
		}
		if want.NetworkVolume = id; path != "" {
			want.MountPath = legacy.Given(path)
		}
	}
	return nil
}

// deadline parses a time in the future. It returns zero if the argument is absent. A time without a zone is in UTC.
func (x *exchange) deadline(a args, name string) (time.Time, error) {
	text := a.text(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05", text)
	}
	switch {
	case err != nil:
		return t, badInput(name + ": expected a time like 2026-12-01T18:00:00Z")
	case !t.After(x.Deps().Now()):
		return t, badInput(name + ": must be in the future")
	}
	return t, nil
}

// newPodInput reads the settings of a new pod. It treats 0 and "" as absent, because clients send them as defaults.
func newPodInput(a args) legacy.PodInput {
	w := podInput(a)
	forNew(&w.Container)
	if ports := portList(a); len(ports) > 0 || a.text("templateId") == "" {
		w.Ports = legacy.Given(ports)
	}
	w.Args, w.Registry, w.VolumeGB = nonZero(w.Args), nonZero(w.Registry), nonZero(w.VolumeGB)
	if w.Name.Value() == "" {
		w.Name = legacy.Given(defaultPodName(a.text("imageName")))
	}
	return w
}

// podInput reads the settings common to pods and templates. more lists further settings that are passed to v2 unchanged.
func podInput(a args, more ...map[string]string) legacy.PodInput {
	return legacy.PodInput{
		Container: containerInput(a),
		Name:      optional[string](a, "name"), MountPath: optional[string](a, "volumeMountPath"), VolumeGB: optional[int64](a, "volumeInGb"),
		PassThrough: plain(a, append(more, startNames)...),
	}
}

func defaultPodName(image string) string {
	if image == "" {
		return "my pod"
	}
	return path.Base(image)
}

// portList combines ports and port. A bare port number is an HTTP port.
func portList(a args) []string {
	ports := translate.SplitList(a.text("ports"))
	if n, _ := a.int("port"); n > 0 {
		if p := strconv.FormatInt(n, 10) + "/http"; !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports
}

// placement reads where the pod may be placed: the given data centres or the data centres of a country, restricted to data
// centres that meet the requested compliance.
func (x *exchange) placement(ctx context.Context, a args, p *legacy.Placement) error {
	p.DataCenters = translate.Unique(append(translate.SplitList(a.text("dataCenterId")), a.texts("dataCenterIds")...))
	if len(p.DataCenters) == 0 && a.text("countryCode") != "" {
		p.Countries = []string{strings.ToUpper(a.text("countryCode"))}
	}
	list := a.texts("compliance")
	if len(list) == 0 {
		return nil
	}
	centres, err := x.compliantCentres(ctx, list, p.DataCenters)
	if err != nil {
		return err
	}
	if p.DataCenters = centres; len(centres) == 0 {
		return &legacy.ShortageError{}
	}
	return nil
}

// createPod creates the pod. Clients that select the machine identify the pod by the machine afterwards, so createPod waits for a short
// time until the machine is known.
func (x *exchange) createPod(ctx context.Context, in input, want *legacy.PodCreate) (any, error) {
	made, err := x.CreatePod(ctx, want)
	if err != nil {
		return nil, err
	}
	if in.Selects("machineId") || in.Selects("machine", "podHostId") {
		made.Pod = x.awaitMachine(ctx, made.Pod)
	}
	return &pod{Pod: made.Pod, status: translate.Running, note: &made.Note}, nil
}

// maxMachineReads is the maximum number of reads of a new pod, one second apart, until its machine is known.
const maxMachineReads = 3

func (x *exchange) awaitMachine(ctx context.Context, p v2.Pod) v2.Pod {
	for range maxMachineReads {
		if _, machine := p.Host(); machine != "" {
			return p
		}
		if x.Pause(ctx, time.Second) != nil {
			break
		}
		now, err := x.Pod(ctx, p.ID())
		if x.Invalidate(); err != nil {
			break
		}
		p = now
	}
	if _, machine := p.Host(); machine == "" {
		x.Warn("machineId", "the machine is not known yet")
	}
	return p
}

// cudaOf reads allowedCudaVersions, cudaVersion and minCudaVersion.
func cudaOf(a args) (legacy.CUDA, error) {
	versions := a.texts("allowedCudaVersions")
	if one := a.text("cudaVersion"); one != "" {
		if len(versions) > 0 && !slices.Contains(versions, one) {
			return legacy.CUDA{}, badInput("cudaVersion must be one of allowedCudaVersions")
		}
		versions = []string{one}
	}
	if len(versions) == 0 {
		versions = nil
	}
	return legacy.CUDAOf(versions, a.text("minCudaVersion"))
}

// leastVCPUs is the smallest vCPU count of any v2 flavour. The legacy interfaces sold a single vCPU.
const leastVCPUs = 2

// splitInstance parses "<flavour>-<vcpu>-<memory>" from the right. v2 derives the memory itself.
func splitInstance(id string) (name string, vcpus int64, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) < 3 {
		return "", 0, false
	}
	n := len(parts)
	vcpus, err := strconv.ParseInt(parts[n-2], 10, 32)
	_, memErr := strconv.ParseFloat(parts[n-1], 64)
	name = strings.Join(parts[:n-2], "-")
	return name, max(vcpus, leastVCPUs), err == nil && memErr == nil && vcpus > 0 && name != ""
}

// variablesOf converts a list of pairs to an environment. If a key occurs several times, the last pair applies.
func variablesOf(list []any) map[string]string {
	env := make(map[string]string, len(list))
	for _, e := range list {
		if pair, ok := e.(map[string]any); ok && args(pair).text("key") != "" {
			env[args(pair).text("key")] = args(pair).text("value")
		}
	}
	return env
}

// onPod adapts a mutation of one pod.
func onPod(f func(ctx context.Context, x *exchange, id string, a args) (*pod, error)) resolver {
	return root(func(ctx context.Context, x *exchange, in input) (any, error) {
		a := in.object("input")
		if err := required(a, "podId"); err != nil {
			return nil, err
		}
		p, err := f(ctx, x, a.text("podId"), a)
		if p == nil || err != nil {
			return nil, err
		}
		return p, nil
	})
}

// podAction returns the resolver of a mutation that is a v2 pod action.
func podAction(act legacy.Action) resolver {
	return onPod(func(ctx context.Context, x *exchange, id string, _ args) (*pod, error) {
		p, err := x.PerformAction(ctx, id, act)
		return &pod{Pod: p, status: act.DesiredStatus()}, err
	})
}

// podResume starts a stopped pod. A pod keeps its host and its GPUs, so podResume refuses a request for other GPUs or another host.
func podResume(ctx context.Context, x *exchange, id string, a args) (*pod, error) {
	accept, err := cudaOf(a)
	if err != nil {
		return nil, err
	}
	count, _ := a.int("gpuCount")
	if count != 0 || !accept.Any() {
		now, err := x.Pod(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case count != 0 && count != now.GPUCount():
			return nil, badInput("gpuCount of an existing pod cannot be changed")
		case now.CUDAVersion() != "" && !accept.Allows(now.CUDAVersion()):
			return nil, badInput("the host of the pod does not have an allowed CUDA version")
		case now.Status() == v2.StatusRunning:
			return &pod{Pod: now, status: translate.Running}, nil
		}
	}
	p, err := x.PerformAction(ctx, id, legacy.Start)
	return &pod{Pod: p, status: translate.Running}, err
}

func podReset(ctx context.Context, x *exchange, id string, _ args) (*pod, error) {
	p, err := x.ResetPod(ctx, id)
	return &pod{Pod: p, status: translate.Running}, err
}

// podEditJob updates a pod. Absent arguments leave settings unchanged.
func podEditJob(ctx context.Context, x *exchange, id string, a args) (*pod, error) {
	w := podInput(a)
	if port, _ := a.int("port"); port > 0 || a.has("ports") {
		w.Ports = legacy.Given(portList(a))
	}
	p, err := x.UpdatePod(ctx, id, &w)
	return &pod{Pod: p}, err
}
