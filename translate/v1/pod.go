package v1

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// podView holds the data of a pod response that is not in the v2 pod.
type podView struct {
	note translate.PodNote
	// gpus is the plain GPU catalog, for names and prices.
	gpus *gpuCatalog
	// intent is the desiredStatus to report after an action, or "" to derive it from the pod.
	intent string
	// machine requests the full machine.
	machine bool
	// volume and template are the v1 values to include, or nil.
	volume, template any
	// worker is the v2 worker that the pod represents, and endpointID the id of its endpoint; worker is nil for a pod.
	worker     any
	endpointID string
}

// shownPod is a v2 pod in v1's form. It includes both the documented fields and those that the original service also
// sent. It encodes itself directly from the v2 pod.
type shownPod struct {
	podView
	v2.Pod
	// user is the same for all pods of a response.
	user string
}

func (r *request) pod(body any, view podView) *shownPod {
	return &shownPod{podView: view, Pod: v2.PodOf(body), user: r.user()}
}

// shownPods is a list of pods that are encoded one at a time.
type shownPods struct {
	// listed holds v2 pods; workers follow them in the response.
	listed, workers []any
	filter          podFilter
	notes           map[string]translate.PodNote
	extras          podExtras
	// one holds the data that the listed pods share.
	one shownPod
}

// AppendTo appends the pods that pass the filter. It omits terminated pods, as v1 did.
func (l *shownPods) AppendTo(buf []byte) ([]byte, error) {
	w := objectWriter{buf: append(buf, '[')}
	begin, written, left := len(w.buf), 0, len(l.listed)+len(l.workers)
	write := func(p *shownPod) {
		if !l.filter.matches(p) {
			return
		}
		if written > 0 {
			w.buf = append(w.buf, ',')
		}
		p.write(&w)
		written++
		if each := (len(w.buf)-begin)/written + 1; cap(w.buf)-len(w.buf) < 2*each { // the remaining pods have about the same size
			w.buf = slices.Grow(w.buf, min((left+1)*each, max(maxListGrowth, 32*len(w.buf))))
		}
	}
	for _, body := range l.listed {
		left--
		p := &l.one
		if p.Pod = v2.PodOf(body); p.Status() == v2.StatusTerminated {
			continue
		}
		p.note = l.notes[p.ID()]
		p.volume, p.template = l.extras.volumes[p.VolumeID()], l.extras.templates[p.templateID()]
		write(p)
	}
	for _, worker := range l.workers {
		write(worker.(*shownPod))
	}
	return append(w.buf, ']'), w.err
}

// maxListGrowth limits the memory reserved for a list by the size of its first pods, in bytes.
const maxListGrowth = 1 << 20

func (p *shownPod) AppendTo(buf []byte) ([]byte, error) {
	w := objectWriter{buf: buf}
	p.write(&w)
	return w.buf, w.err
}

func (p *shownPod) write(w *objectWriter) {
	w.begin()
	p.members(w)
	w.end()
}

// members writes the pod's members, sorted by name.
func (p *shownPod) members(w *objectWriter) {
	isCPU, volume, ports := p.IsCPU(), p.VolumeID(), p.OpenPorts()
	command, rate, gpu, gpuTypeID := p.Command(), p.cost(), p.gpu(), p.gpuTypeID()
	w.number("adjustedCostPerHr", rate)
	if p.worker != nil {
		w.value("aiApiId", nil)
	}
	w.text("consumerUserId", p.user)
	w.whole("containerDiskInGb", p.Disk())
	w.text("containerRegistryAuthId", p.Registry())
	w.number("costPerHr", rate)
	if isCPU {
		w.text("cpuFlavorId", p.CPU())
	}
	w.text("createdAt", translate.FormatTime(p.CreatedAt(), translate.LegacyTime))
	w.text("desiredStatus", p.status())
	w.texts("dockerEntrypoint", command.Entrypoint)
	w.texts("dockerStartCmd", command.Cmd)
	if p.worker != nil {
		w.text("endpointId", p.endpointID)
	}
	w.members("env", p.Variables(), p.note.InjectedEnv)
	if gpuTypeID != "" {
		w.object("gpu")
		gpu.members(w)
		w.end()
	}
	w.whole("gpuCount", gpu.count)
	if gpuTypeID != "" {
		w.text("gpuTypeId", gpuTypeID)
	}
	w.text("id", p.ID())
	w.text("image", p.Image())
	w.text("imageName", p.Image())
	w.flag("interruptible", false)
	w.text("lastStartedAt", translate.FormatTime(cmp.Or(p.StartedAt(), p.CreatedAt()), translate.LegacyTime))
	w.textFrom("lastStatusChange", func(buf []byte) []byte { return legacy.AppendLastStatusChange(buf, p.Pod) })
	w.flag("locked", p.Locked())
	w.object("machine")
	p.machineMembers(w, gpu, ports)
	w.end()
	_, machine := p.Host()
	w.text("machineId", machine)
	w.whole("memoryInGb", p.Memory())
	w.text("name", p.Name())
	if p.volume != nil {
		w.value("networkVolume", p.volume)
	}
	if volume != "" {
		w.text("networkVolumeId", volume)
	}
	w.value("portMappings", p.portMappings(ports))
	w.room = p.AppendPorts(w.room[:0])
	w.texts("ports", w.room)
	w.text("publicIp", publicIP(ports))
	w.texts("savingsPlans", nil)
	if p.worker != nil {
		w.whole("slsVersion", translate.Whole(p.worker, "version"))
	}
	if p.template != nil {
		w.value("template", p.template)
	}
	w.text("templateId", p.templateID())
	w.whole("vcpuCount", p.VCPUs())
	w.flag("volumeEncrypted", false)
	w.whole("volumeInGb", p.PersistentSize())
	w.text("volumeMountPath", cmp.Or(p.MountPath(), defaultPath))
	if p.worker != nil {
		w.text("workerStatus", translate.Text(p.worker, "status"))
	}
}

func (p *shownPod) templateID() string { return legacy.TemplateIDOfPod(p.Pod, p.note) }

// family returns GPU or CPU.
func (p *shownPod) family() string {
	if p.IsCPU() {
		return "CPU"
	}
	return "GPU"
}

// gpuTypeID returns the type of a GPU pod, or "".
func (p *shownPod) gpuTypeID() string {
	if p.IsCPU() {
		return ""
	}
	return p.GPU()
}

func (p *shownPod) status() string {
	return cmp.Or(p.intent, translate.DesiredStatus(p.Status()))
}

// gpuType is the GPU of a pod. If its id is empty, the pod has no GPU.
type gpuType struct {
	listedGPU
	count int64
}

func (p *shownPod) gpu() gpuType {
	return gpuType{listedGPU: p.gpus.lookup(p.GPU()), count: p.GPUCount()}
}

// members writes the type with its catalog name and prices. v2 has hourly prices only, so the prices for longer terms and
// spot pods are 0.
func (g gpuType) members(w *objectWriter) {
	w.number("communityPrice", g.community)
	w.whole("communitySpotPrice", 0)
	w.whole("count", g.count)
	w.text("displayName", g.name)
	w.text("id", g.id)
	w.whole("oneMonthPrice", 0)
	w.whole("oneWeekPrice", 0)
	w.number("securePrice", g.secure)
	w.whole("secureSpotPrice", 0)
	w.whole("sixMonthPrice", 0)
	w.whole("threeMonthPrice", 0)
}

// cost returns the hourly price of the pod, or 0 for a stopped pod.
func (p *shownPod) cost() json.Number {
	switch p.Status() {
	case v2.StatusExited, v2.StatusTerminated:
		return "0"
	}
	return amount(p.Cost())
}

// machineMembers writes the machine. The short form has only data from v2, and less of it if the pod has no data centre.
// Typed clients need the price and the public address of a placed pod.
func (p *shownPod) machineMembers(w *objectWriter, gpu gpuType, ports []v2.Port) {
	cloud, centre, full := p.Cloud(), p.DataCenter(), p.machine
	placed := full || centre != ""
	if placed {
		w.number("costPerHr", p.cost())
	}
	if full {
		w.whole("cpuCount", p.VCPUs())
		w.value("currentPricePerGpu", p.pricePerGPU())
	}
	if centre != "" {
		w.text("dataCenterId", centre)
	}
	if full {
		w.whole("diskThroughputMBps", 0)
		w.whole("gpuAvailable", 0)
	}
	if gpu.id != "" {
		w.text("gpuDisplayName", gpu.name)
		if full {
			w.object("gpuType")
			gpu.members(w)
			w.end()
		}
		w.text("gpuTypeId", gpu.id)
	}
	if centre != "" {
		w.text("location", translate.Location(centre))
	}
	if full {
		w.value("maintenanceEnd", nil)
		w.value("maintenanceNote", nil)
		w.value("maintenanceStart", nil)
		w.whole("maxDownloadSpeedMbps", 0)
		w.whole("maxUploadSpeedMbps", 0)
		w.whole("minPodGpuCount", 1)
		w.text("note", "")
	}
	if cloud != "" {
		w.flag("secureCloud", cloud == "SECURE")
	}
	if placed {
		w.flag("supportPublicIp", cloud == "SECURE" || publicIP(ports) != "")
	}
}

func (p *shownPod) pricePerGPU() any {
	count := p.GPUCount()
	if count < 2 {
		return p.cost()
	}
	hourly, _ := translate.Number(p.cost())
	return hourly / float64(count)
}

// publicIP returns the address of the first open TCP port, or "".
func publicIP(ports []v2.Port) string {
	for _, port := range ports {
		if port.Open() && port.IP != "" {
			return port.IP
		}
	}
	return ""
}

// portMappings maps private to public TCP ports. It is null while the pod has no runtime data.
func (p *shownPod) portMappings(ports []v2.Port) any {
	if len(ports) == 0 && p.Runtime() == nil {
		return nil
	}
	out := map[string]any{}
	for _, port := range ports {
		if port.Open() {
			out[strconv.FormatInt(port.Private, 10)] = port.Public
		}
	}
	return out
}

// worker returns a serverless worker as a pod, as v1 presented it.
func (r *request) worker(worker any, endpointID string, gpus *gpuCatalog) *shownPod {
	pod := map[string]any{
		"id": translate.At(worker, "id"), "image": translate.At(worker, "image"), "status": "RUNNING",
		"dataCenterId": translate.At(worker, "dataCenterId"), "startedAt": translate.At(worker, "startedAt"),
		"gpu": map[string]any{"id": translate.At(worker, "gpuTypeId"), "count": translate.At(worker, "gpuCount")},
	}
	return r.pod(pod, podView{gpus: gpus, worker: worker, endpointID: endpointID})
}
