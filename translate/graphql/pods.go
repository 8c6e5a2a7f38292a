package graphql

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// pod is a v2 pod, or a serverless worker presented as a pod.
type pod struct {
	v2.Pod
	// status is the desiredStatus to report after an action, or "" to derive it from the pod.
	status string
	// note is the note of a newly created pod; nil means that it must be read.
	note *translate.PodNote
	// group is the list that contains the pod; the notes of its pods are read together. It is nil for a pod that was read alone.
	group *podGroup
	// endpoint is the endpoint id of a worker, or "" for a pod.
	endpoint string
	// version is the release that a worker runs, or nil for a pod.
	version any
}

func (p *pod) desiredStatus() string {
	return cmp.Or(p.status, translate.DesiredStatus(p.Status()))
}

// runtime returns the runtime data of a running pod, or nil. Orchestrators poll until it is set.
func (p *pod) runtime() any {
	if r := p.Runtime(); r != nil && p.status != translate.Exited && p.Status() == v2.StatusRunning {
		return r
	}
	return nil
}

// number returns the number at path, or 0.
func number(v any, path ...string) float64 {
	f, _ := translate.Number(translate.At(v, path...))
	return f
}

// pairs appends an environment as sorted KEY=value lines. It returns no lines if a value is an object or array.
func pairs(lines []string, env any) []string {
	switch vars := env.(type) {
	case translate.Record:
		lines = vars.AppendNames(lines)
	case map[string]any:
		for name := range vars {
			lines = append(lines, name)
		}
	}
	for i, name := range lines {
		value, ok := translate.Variable(env, name)
		if !ok {
			return lines[:0]
		}
		lines[i] = name + "=" + value
	}
	slices.Sort(lines)
	return lines
}

// instant converts a v2 time to the legacy layout.
func instant(s string) string { return translate.FormatTime(s, translate.LegacyTime) }

// rate returns the price per hour, or 0.
func (p *pod) rate() float64 {
	f, _ := translate.Float(p.Cost())
	return f
}

func podByID(ctx context.Context, x *exchange, id string) (any, error) {
	p, err := x.Pod(ctx, id)
	if err != nil {
		return nil, orMissing(err)
	}
	return &pod{Pod: p}, nil
}

func wrapPods(bodies []any) []any {
	out, pods, g := make([]any, len(bodies)), make([]pod, len(bodies)), &podGroup{ids: make([]string, len(bodies))}
	for i, b := range bodies {
		pods[i] = pod{Pod: v2.PodOf(b), group: g}
		out[i], g.ids[i] = &pods[i], pods[i].ID()
	}
	return out
}

// podGroup holds the notes of the pods of one list, read on first use.
type podGroup struct {
	ids   []string
	once  sync.Once
	notes map[string]translate.PodNote
}

// remembered returns the stored note of the pod. If the store fails, the response is less exact.
func (p *pod) remembered(ctx context.Context, x *exchange) translate.PodNote {
	if p.note != nil {
		return *p.note
	}
	if g := p.group; g != nil {
		g.once.Do(func() { g.notes, _ = translate.FindNotes[translate.PodNote](ctx, x.Client, translate.KindPod, g.ids) })
		return g.notes[p.ID()]
	}
	n, _, _ := x.PodNote(ctx, p.ID())
	return n
}

func podTypes() map[string]objectType {
	return map[string]objectType{
		"Pod":                 podFields(),
		"PodMachineInfo":      machineFields(),
		"PodRuntime":          runtimeFields(),
		"PodRuntimePorts":     portFields(),
		"PodRuntimeGpus":      gpuUseFields(),
		"PodRuntimeContainer": containerFields(),
		"Gpu":                 {"id": get(func(g gpuUse) any { return g.id }), "podId": get(func(g gpuUse) any { return g.pod })},
	}
}

func podFields() objectType {
	return objectType{
		"id":            text(func(p *pod) string { return p.ID() }),
		"name":          text(func(p *pod) string { return p.Name() }),
		"desiredStatus": text(func(p *pod) string { return p.desiredStatus() }),
		"podType":       always("RESERVED"),
		"imageName":     text(func(p *pod) string { return p.Image() }),
		"dockerArgs":    text(func(p *pod) string { return p.Shell() }),
		"env":           texts(func(list []string, p *pod) []string { return pairs(list, p.Variables()) }),
		"port":          always(nil),
		"ports": field(func(_ context.Context, _ *exchange, p *pod, in input) (any, error) {
			return in.Text(strings.Join(p.AppendPorts(in.Buffer()), ",")), nil
		}),
		"containerDiskInGb":       whole(func(p *pod) int64 { return p.Disk() }),
		"volumeInGb":              whole(func(p *pod) int64 { return p.PersistentSize() }),
		"volumeMountPath":         text(func(p *pod) string { return p.MountPath() }),
		"volumeKey":               always(nil),
		"volumeEncrypted":         always(false),
		"networkVolumeId":         textOrNull(func(p *pod) string { return p.VolumeID() }),
		"containerRegistryAuthId": textOrNull(func(p *pod) string { return p.Registry() }),
		"gpuCount":                whole(func(p *pod) int64 { return p.GPUCount() }),
		"vcpuCount":               whole(func(p *pod) int64 { return p.VCPUs() }),
		"memoryInGb":              whole(func(p *pod) int64 { return p.Memory() }),
		"costPerHr":               float((*pod).rate),
		"adjustedCostPerHr":       float((*pod).rate),
		"uptimeSeconds":           whole(func(p *pod) int64 { return translate.Whole(p.runtime(), "uptime") }),
		"createdAt":               textOrNull(func(p *pod) string { return instant(p.CreatedAt()) }),
		"lastStartedAt":           textOrNull(func(p *pod) string { return instant(p.StartedAt()) }),
		"lastStatusChange":        text(func(p *pod) string { return legacy.LastStatusChange(p.Pod) }),
		"locked":                  get(func(p *pod) any { return p.Locked() }),
		"machineId":               textOrNull(func(p *pod) string { return second(p.Host()) }),
		"machine":                 get(func(p *pod) any { return p }),
		"clusterIp":               textOrNull(func(p *pod) string { return second(p.Cluster()) }),
		"clusterId":               textOrNull(func(p *pod) string { return first(p.Cluster()) }),
		"endpointId":              textOrNull(func(p *pod) string { return p.endpoint }),
		"aiApiId":                 always(nil),
		"cpuFlavorId":             textOrNull(func(p *pod) string { return p.CPU() }),
		"savingsPlans":            always([]any{}), // not available in v2
		"gpus": get(func(p *pod) any {
			out := make([]any, p.GPUCount())
			for i := range out {
				out[i] = p.gpu(i, nil)
			}
			return out
		}),
		"consumerUserId": userID,
		"templateId": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			return orNull(legacy.TemplateIDOfPod(p.Pod, p.remembered(ctx, x))), nil
		}),
		"networkVolume": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			return x.volumeByID(ctx, p.VolumeID())
		}),
		"slsVersion": get(func(p *pod) any { return p.version }),
		"clusterIdx": get(func(p *pod) any { return p.Rank() }),
		"endpoint": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			if p.endpoint == "" {
				return nil, nil
			}
			return x.endpointByID(ctx, p.endpoint)
		}),
		"cpuFlavor": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			if p.CPU() == "" {
				return nil, nil
			}
			list, err := x.CPUs(ctx, "POD", 0)
			if entry := translate.ByID(list, p.CPU()); entry != nil {
				return cpuFlavor{entry}, nil
			}
			return nil, err
		}),
		"runtime": get(func(p *pod) any {
			if p.runtime() == nil {
				return nil
			}
			return p
		}),
	}
}

func first(a, _ string) string { return a }

func second(_, b string) string { return b }

func machineFields() objectType {
	return objectType{
		"podHostId":      textOrNull(func(p *pod) string { return first(p.Host()) }),
		"gpuDisplayName": field(machineGPUName),
		"gpuTypeId":      textOrNull(func(p *pod) string { return p.GPU() }),
		"gpuType": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			return x.gpuByID(ctx, p.GPU())
		}),
		"cpuCount":        whole(func(p *pod) int64 { return p.VCPUs() }),
		"cpuTypeId":       always(nil),
		"location":        text(func(p *pod) string { return translate.Location(p.DataCenter()) }),
		"dataCenterId":    textOrNull(func(p *pod) string { return p.DataCenter() }),
		"secureCloud":     get(func(p *pod) any { return p.Cloud() == "SECURE" }),
		"supportPublicIp": get(func(p *pod) any { return slices.ContainsFunc(p.reachable(), isPublic) }),
		"costPerHr":       float((*pod).rate),
		"currentPricePerGpu": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			entry, err := x.gpuEntry(ctx, p.GPU())
			if err != nil || entry == nil {
				return nil, err
			}
			return cloudPrice(entry, cmp.Or(p.Cloud(), secure)), nil
		}),
		"diskMBps":             always(0),
		"maxDownloadSpeedMbps": always(0),
		"maxUploadSpeedMbps":   always(0),
		"gpuAvailable":         always(0),
		"note":                 always(""),
		"minPodGpuCount":       always(1),
		"id":                   textOrNull(func(p *pod) string { return second(p.Host()) }),
	}
}

// machineGPUName returns the display name of the GPU. It falls back to the id, so that a pod can be shown even if the
// catalog cannot be read.
func machineGPUName(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
	id := p.GPU()
	if id == "" {
		return "", nil
	}
	name := id
	if entry, err := x.gpuEntry(ctx, id); err == nil {
		name = cmp.Or(translate.Text(entry, "name"), id)
	}
	return name, nil
}

func runtimeFields() objectType {
	return objectType{
		"uptimeInSeconds": whole(func(p *pod) int64 { return translate.Whole(p.runtime(), "uptime") }),
		"container":       get(func(p *pod) any { return p }),
		"gpus": get(func(p *pod) any {
			items := translate.Items(p.runtime(), "gpus")
			out := make([]any, len(items))
			for i, g := range items {
				out[i] = p.gpu(i, g)
			}
			return out
		}),
		"ports": get(func(p *pod) any {
			out := []any{}
			for _, q := range p.reachable() {
				out = append(out, q)
			}
			return out
		}),
	}
}

// gpuUse is one GPU of a pod. v2 does not assign ids to GPUs.
type gpuUse struct {
	id, pod string
	body    any
}

func (p *pod) gpu(i int, body any) gpuUse {
	return gpuUse{id: "GPU-" + p.ID() + "-" + strconv.Itoa(i), pod: p.ID(), body: body}
}

func gpuUseFields() objectType {
	return objectType{
		"id":                get(func(g gpuUse) any { return g.id }),
		"gpuUtilPercent":    get(func(g gpuUse) any { return number(g.body, "util") }),
		"memoryUtilPercent": get(func(g gpuUse) any { return number(g.body, "memoryUtil") }),
	}
}

func containerFields() objectType {
	return objectType{
		"cpuPercent":    get(func(p *pod) any { return number(p.runtime(), "cpu", "util") }),
		"memoryPercent": get(func(p *pod) any { return number(p.runtime(), "memory", "util") }),
	}
}

// reachable lists the ports that have an address and a public number.
func (p *pod) reachable() []v2.Port {
	if p.runtime() == nil {
		return nil
	}
	return slices.DeleteFunc(p.OpenPorts(), func(q v2.Port) bool { return q.IP == "" || q.Public == 0 })
}

// isPublic reports whether a port is a TCP port with a public address. The shared address space of RFC 6598, which http
// ports use, is not public, although netip does not report it as private.
func isPublic(q v2.Port) bool {
	ip, err := netip.ParseAddr(q.IP)
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10)
	return q.Type == "tcp" && err == nil && !ip.IsPrivate() && !ip.IsLoopback() && !shared.Contains(ip)
}

func portFields() objectType {
	return objectType{
		"ip":          get(func(q v2.Port) any { return q.IP }),
		"isIpPublic":  get(func(q v2.Port) any { return isPublic(q) }),
		"privatePort": get(func(q v2.Port) any { return q.Private }),
		"publicPort":  get(func(q v2.Port) any { return q.Public }),
		"type":        get(func(q v2.Port) any { return q.Type }),
	}
}

// orNil returns nil for 0.
func orNil(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// orNull returns nil for an empty string.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
