package graphql

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
)

// pod is a v2 pod, or a serverless worker put in the shape of one.
type pod struct {
	body any
	// status is the desiredStatus an action forces into its answer, "" for the
	// pod's own.
	status string
	// group is the list it came in, whose notes are read together; nil for a
	// pod read alone.
	group *podGroup
	// endpoint is the endpoint of a worker, "" for a pod.
	endpoint string
	// template is known at creation, before any note is read.
	template string
}

func (p *pod) text(path ...string) string { return translate.Text(p.body, path...) }

func (p *pod) id() string { return p.text("id") }

func (p *pod) desiredStatus() string {
	if p.status != "" {
		return p.status
	}
	return translate.DesiredStatus(p.text("status"))
}

// runtime is the live part of a running pod, nil otherwise: orchestrators poll
// until it is there.
func (p *pod) runtime() map[string]any {
	if p.status == translate.Exited || p.text("status") != "RUNNING" {
		return nil
	}
	if r := translate.Members(p.body, "runtime"); len(r) > 0 {
		return r
	}
	return nil
}

// mount returns the path of whichever mount there is.
func (p *pod) mountPath() string {
	if path := p.text("mounts", "persistent", "path"); path != "" {
		return path
	}
	return translate.Text(p.network(), "path")
}

// network is the network mount, nil when there is none.
func (p *pod) network() any { return first(translate.Items(p.body, "mounts", "network")) }

// compute reads a figure of the GPU or CPU part, rounded down.
func (p *pod) compute(name string) int64 {
	if translate.Members(p.body, "gpu") != nil {
		return translate.Whole(p.body, "gpu", name)
	}
	return translate.Whole(p.body, "cpu", name)
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// number is the value at path as a number, 0 when there is none.
func number(v any, path ...string) float64 {
	f, _ := translate.Number(translate.At(v, path...))
	return f
}

// texts makes a list of strings a list of values.
func values(list []string) []any { return translate.List(list) }

// pairs is an environment as sorted KEY=value lines.
func pairs(v any) []any {
	env, err := translate.Env(v)
	if err != nil {
		return []any{}
	}
	lines := make([]string, 0, len(env))
	for key, value := range env {
		lines = append(lines, key+"="+value)
	}
	slices.Sort(lines)
	return values(lines)
}

// instant rewrites a time of v2; null when there is none.
func instant(s string) any {
	if s == "" {
		return nil
	}
	return translate.FormatTime(s, translate.LegacyTime)
}

func podByID(ctx context.Context, x *exchange, in input) (any, error) {
	id := in.object("input").text("podId")
	if id == "" {
		return nil, badInput("podId is required")
	}
	b, err := x.fetch(ctx, "getPod", id, kindPod)
	if isStatus(err, 404) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &pod{body: b}, nil
}

// pods lists every pod of the account, cluster members included.
func (x *exchange) pods(ctx context.Context) ([]any, error) {
	return x.list(ctx, "listPods", "pods", url.Values{"includeClusterPods": {"true"}}, kindPod)
}

func wrapPods(bodies []any) []any {
	out, g := make([]any, len(bodies)), &podGroup{ids: make([]string, len(bodies))}
	for i, b := range bodies {
		p := &pod{body: b, group: g}
		out[i], g.ids[i] = p, p.id()
	}
	return out
}

// podGroup is what the store remembers about the pods of one list, read when
// first asked for.
type podGroup struct {
	ids   []string
	once  sync.Once
	notes map[string]translate.PodNote
	err   error
}

// podNote is what the store remembers about the pod.
func (x *exchange) podNote(ctx context.Context, p *pod) (note translate.PodNote, ok bool, err error) {
	if g := p.group; g != nil {
		g.once.Do(func() {
			g.notes, g.err = translate.FindNotes[translate.PodNote](ctx, x.Dialogue, translate.KindPod, g.ids)
		})
		n, ok := g.notes[p.id()]
		return n, ok, g.err
	}
	return translate.LoadNote[translate.PodNote](ctx, x.Dialogue, x.key(translate.KindPod, p.id()))
}

func (x *exchange) key(kind, id string) translate.Key {
	return translate.Key{Account: x.Account(), Kind: kind, ID: id}
}

func podTypes() map[string]objectType {
	return map[string]objectType{
		"Pod":                 podFields(),
		"PodMachineInfo":      machineFields(),
		"PodRuntime":          runtimeFields(),
		"PodRuntimePorts":     portFields(),
		"PodRuntimeGpus":      gpuUseFields(),
		"PodRuntimeContainer": containerFields(),
		// v2 tells no telemetry, so Pod.latestTelemetry is always null.
		"PodTelemetry": {"state": always(nil), "time": always(nil)},
	}
}

func podFields() objectType {
	fields := objectType{
		"id":                      get(func(p *pod) any { return p.id() }),
		"name":                    get(func(p *pod) any { return p.text("name") }),
		"desiredStatus":           get(func(p *pod) any { return p.desiredStatus() }),
		"podType":                 always("RESERVED"),
		"imageName":               get(func(p *pod) any { return p.text("image") }),
		"dockerArgs":              get(func(p *pod) any { return translate.ShellOf(p.body) }),
		"dockerId":                always(nil),
		"env":                     get(func(p *pod) any { return pairs(translate.At(p.body, "env")) }),
		"port":                    always(nil),
		"ports":                   get(func(p *pod) any { return strings.Join(translate.Texts(p.body, "ports"), ",") }),
		"containerDiskInGb":       get(func(p *pod) any { return translate.Whole(p.body, "disk") }),
		"volumeInGb":              get(func(p *pod) any { return translate.Whole(p.body, "mounts", "persistent", "size") }),
		"volumeMountPath":         get(func(p *pod) any { return p.mountPath() }),
		"volumeKey":               always(nil),
		"volumeEncrypted":         always(false),
		"networkVolumeId":         get(func(p *pod) any { return orNull(translate.Text(p.network(), "volumeId")) }),
		"containerRegistryAuthId": get(func(p *pod) any { return orNull(p.text("registry")) }),
		"gpuCount":                get(func(p *pod) any { return translate.Whole(p.body, "gpu", "count") }),
		"vcpuCount":               get(func(p *pod) any { return p.compute("vcpuCount") }),
		"memoryInGb":              get(func(p *pod) any { return p.compute("memory") }),
		"costPerHr":               get(func(p *pod) any { return number(p.body, "cost") }),
		"adjustedCostPerHr":       get(func(p *pod) any { return number(p.body, "cost") }),
		"uptimeSeconds":           get(func(p *pod) any { return translate.Whole(p.runtime(), "uptime") }),
		"createdAt":               get(func(p *pod) any { return instant(p.text("createdAt")) }),
		"lastStartedAt":           get(func(p *pod) any { return instant(p.text("startedAt")) }),
		"lastStatusChange":        get(func(p *pod) any { return p.lastStatusChange() }),
		"locked":                  get(func(p *pod) any { return translate.Flag(p.body, "locked") }),
		"machineId":               get(func(p *pod) any { return orNull(p.machineID()) }),
		"machine":                 get(func(p *pod) any { return p }),
		"clusterIp":               get(func(p *pod) any { return orNull(p.text("cluster", "ip")) }),
		"clusterId":               get(func(p *pod) any { return orNull(p.text("cluster", "id")) }),
		"endpointId":              get(func(p *pod) any { return orNull(p.endpoint) }),
		"aiApiId":                 always(nil),
		"cpuFlavorId":             get(func(p *pod) any { return orNull(p.text("cpu", "id")) }),
		"latestTelemetry":         always(nil),
		"runtime": get(func(p *pod) any {
			if p.runtime() == nil {
				return nil
			}
			return p
		}),
	}
	fields["consumerUserId"] = field(func(_ context.Context, x *exchange, _ *pod, _ input) (any, error) {
		return x.user(), nil
	})
	fields["templateId"] = field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
		if p.template != "" {
			return p.template, nil
		}
		n, _, _ := x.podNote(ctx, p)
		return orNull(orElse(n.TemplateID, p.text("template"))), nil
	})
	fields["networkVolume"] = field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
		return x.volumeByID(ctx, translate.Text(p.network(), "volumeId"))
	})
	return fields
}

// lastStatusChange is the sentence the retired service showed; v2 keeps no
// history, so the time is that of the start or the creation.
func (p *pod) lastStatusChange() string {
	when := p.text("createdAt")
	what := "Rented by User: "
	switch {
	case p.text("status") == "ERROR" && p.status == "":
		what = "Exited with error: "
	case p.desiredStatus() == translate.Exited:
		what = "Exited by User: "
	}
	return what + translate.FormatTime(when, translate.ScriptTime)
}

// machineID is what the proxy's user name tells of the host.
func (p *pod) machineID() string {
	return strings.TrimPrefix(p.text("ssh", "proxy", "username"), p.id()+"-")
}

func machineFields() objectType {
	return objectType{
		"podHostId":      get(func(p *pod) any { return orNull(p.text("ssh", "proxy", "username")) }),
		"gpuDisplayName": field(machineGPUName),
		"gpuTypeId":      get(func(p *pod) any { return orNull(p.text("gpu", "id")) }),
		"gpuType": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			return x.gpuByID(ctx, p.text("gpu", "id"))
		}),
		"cpuCount":        get(func(p *pod) any { return p.compute("vcpuCount") }),
		"cpuTypeId":       always(nil),
		"location":        get(func(p *pod) any { return translate.Location(p.text("dataCenterId")) }),
		"dataCenterId":    get(func(p *pod) any { return orNull(p.text("dataCenterId")) }),
		"secureCloud":     get(func(p *pod) any { return p.text("cloud") == "SECURE" }),
		"supportPublicIp": get(func(p *pod) any { return slices.ContainsFunc(p.ports(), port.public) }),
		"costPerHr":       get(func(p *pod) any { return number(p.body, "cost") }),
		"currentPricePerGpu": field(func(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
			entry, err := x.gpuEntry(ctx, p.text("gpu", "id"))
			if err != nil || entry == nil {
				return nil, err
			}
			return cloudPrice(entry, orElse(p.text("cloud"), secure)), nil
		}),
		"diskMBps":             always(0),
		"maxDownloadSpeedMbps": always(0),
		"maxUploadSpeedMbps":   always(0),
		"gpuAvailable":         always(0),
		"note":                 always(""),
		"maintenanceStart":     always(nil),
		"maintenanceEnd":       always(nil),
		"maintenanceNote":      always(nil),
	}
}

// machineGPUName falls back to the id: a pod must be shown even when the
// catalog cannot be read.
func machineGPUName(ctx context.Context, x *exchange, p *pod, _ input) (any, error) {
	id := p.text("gpu", "id")
	if id == "" {
		return "", nil
	}
	name := id
	if entry, err := x.gpuEntry(ctx, id); err == nil {
		name = orElse(translate.Text(entry, "name"), id)
	}
	return name, nil
}

func runtimeFields() objectType {
	return objectType{
		"uptimeInSeconds": get(func(p *pod) any { return translate.Whole(p.runtime(), "uptime") }),
		"container":       get(func(p *pod) any { return p }),
		"gpus": get(func(p *pod) any {
			items := translate.Items(p.runtime(), "gpus")
			out := make([]any, len(items))
			for i, g := range items {
				out[i] = gpuUse{id: "GPU-" + p.id() + "-" + strconv.Itoa(i), body: g}
			}
			return out
		}),
		"ports": get(func(p *pod) any {
			out := []any{}
			for _, q := range p.ports() {
				out = append(out, q)
			}
			return out
		}),
	}
}

type gpuUse struct {
	id   string
	body any
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

// port is one reachable port of a running pod.
type port struct {
	ip, kind          string
	private, external int64
}

// ports lists those that have an address and a public number.
func (p *pod) ports() []port {
	var out []port
	for _, q := range translate.Items(p.runtime(), "ports") {
		ip := translate.Text(q, "ip")
		external := either(q, "public", "publicPort")
		if ip == "" || external == 0 {
			continue
		}
		out = append(out, port{
			ip: ip, kind: translate.Text(q, "type"), private: either(q, "private", "privatePort"), external: external,
		})
	}
	return out
}

func either(v any, name, other string) int64 {
	if n := translate.Whole(v, name); n != 0 {
		return n
	}
	return translate.Whole(v, other)
}

// public reports a TCP port on a public address. The shared space of RFC 6598 is
// not one, although netip does not call it private.
func (q port) public() bool {
	ip, err := netip.ParseAddr(q.ip)
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10)
	return q.kind == "tcp" && err == nil && !ip.IsPrivate() && !ip.IsLoopback() && !shared.Contains(ip)
}

func portFields() objectType {
	return objectType{
		"ip":          get(func(q port) any { return q.ip }),
		"isIpPublic":  get(func(q port) any { return q.public() }),
		"privatePort": get(func(q port) any { return q.private }),
		"publicPort":  get(func(q port) any { return q.external }),
		"type":        get(func(q port) any { return q.kind }),
	}
}

// orNull is nil for an empty string.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
