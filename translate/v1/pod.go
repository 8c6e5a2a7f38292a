package v1

import (
	"cmp"
	"maps"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// podView is what a pod response is made of besides the v2 pod.
type podView struct {
	note translate.PodNote
	// types is the plain GPU catalog, for names and prices.
	types []any
	// intent is the desiredStatus to report instead of the mapped one: what the
	// caller just asked for.
	intent string
	// machine asks for the machine in full.
	machine bool
	// volume and template are the v1 shapes to include, nil for none.
	volume, template any
	// worker is the v2 worker the pod stands for, of the endpoint with the id;
	// nil for none.
	worker     any
	endpointID string
}

// shownPod is a v2 pod in v1's shape, the documented names and those seen on the
// wire together. It is written from the pod at the end.
type shownPod struct {
	podView
	pod any
	// user and timeLayout are the same for all pods of an answer.
	user, timeLayout string
}

func (r *request) pod(pod any, view podView) *shownPod {
	return &shownPod{podView: view, pod: pod, user: r.user(), timeLayout: r.api.timeLayout}
}

func (p *shownPod) appendTo(buf []byte) ([]byte, error) {
	w := &objectWriter{buf: buf}
	w.object(p.members)
	return w.buf, w.err
}

// members writes the pod's members, by name.
func (p *shownPod) members(w *objectWriter) {
	pod, isCPU, family := p.pod, p.isCPU(), "gpu"
	if isCPU {
		family = "cpu"
	}
	command, rate, gpu, gpuTypeID := translate.CommandOf(pod), cost(pod), gpuOf(pod, p.types), p.gpuTypeID()
	w.value("adjustedCostPerHr", rate)
	if p.worker != nil {
		w.value("aiApiId", nil)
	}
	w.text("consumerUserId", p.user)
	w.whole("containerDiskInGb", translate.Whole(pod, "disk"))
	w.text("containerRegistryAuthId", translate.Text(pod, "registry"))
	w.value("costPerHr", rate)
	if isCPU {
		w.text("cpuFlavorId", translate.Text(pod, "cpu", "id"))
	}
	w.text("createdAt", translate.FormatTime(translate.Text(pod, "createdAt"), p.timeLayout))
	w.text("desiredStatus", p.status())
	w.texts("dockerEntrypoint", command.Entrypoint)
	w.texts("dockerStartCmd", command.Cmd)
	if p.worker != nil {
		w.text("endpointId", p.endpointID)
	}
	w.value("env", withoutKeys(object(pod, "env"), p.note.InjectedEnv))
	if gpuTypeID != "" {
		w.name("gpu").object(gpu.card)
	}
	w.whole("gpuCount", gpu.count)
	if gpuTypeID != "" {
		w.text("gpuTypeId", gpuTypeID)
	}
	w.text("id", translate.Text(pod, "id"))
	w.text("image", translate.Text(pod, "image"))
	w.text("imageName", translate.Text(pod, "image"))
	w.flag("interruptible", false)
	w.text("lastStartedAt", translate.FormatTime(startedAt(pod), p.timeLayout))
	w.text("lastStatusChange", lastStatusChange(pod))
	w.flag("locked", translate.Flag(pod, "locked"))
	w.name("machine").object(func(w *objectWriter) { p.machineMembers(w, gpu) })
	w.text("machineId", machineID(pod))
	w.whole("memoryInGb", translate.Whole(pod, family, "memory"))
	w.text("name", translate.Text(pod, "name"))
	if p.volume != nil {
		w.value("networkVolume", p.volume)
	}
	if id := volumeOf(pod); id != "" {
		w.text("networkVolumeId", id)
	}
	w.value("portMappings", portMappings(pod))
	w.texts("ports", translate.Texts(pod, "ports"))
	w.text("publicIp", publicIP(pod))
	w.texts("savingsPlans", nil)
	if p.worker != nil {
		w.whole("slsVersion", translate.Whole(p.worker, "version"))
	}
	if p.template != nil {
		w.value("template", p.template)
	}
	w.text("templateId", templateOf(pod, p.note))
	w.whole("vcpuCount", translate.Whole(pod, family, "vcpuCount"))
	w.flag("volumeEncrypted", false)
	w.whole("volumeInGb", translate.Whole(pod, "mounts", "persistent", "size"))
	w.text("volumeMountPath", mountPath(pod))
	if p.worker != nil {
		w.text("workerStatus", translate.Text(p.worker, "status"))
	}
}

func (p *shownPod) isCPU() bool { return translate.Members(p.pod, "cpu") != nil }

// gpuTypeID is the type of a GPU pod, "" of any other.
func (p *shownPod) gpuTypeID() string {
	if p.isCPU() {
		return ""
	}
	return translate.Text(p.pod, "gpu", "id")
}

func (p *shownPod) status() string {
	return cmp.Or(p.intent, translate.DesiredStatus(translate.Text(p.pod, "status")))
}

// gpuType is the GPU of a pod; one without an id is none.
type gpuType struct {
	id    string
	count int64
	// listed is the type's record in the catalog, nil when there is none.
	listed any
}

func gpuOf(pod any, types []any) gpuType {
	gpu := gpuType{id: translate.Text(pod, "gpu", "id"), count: translate.Whole(pod, "gpu", "count")}
	if gpu.id != "" {
		gpu.listed = translate.ByID(types, gpu.id)
	}
	return gpu
}

// name is the catalog's name of the type, its id when there is none.
func (g gpuType) name() string { return cmp.Or(translate.Text(g.listed, "name"), g.id) }

// card describes the type with its catalog name and prices. v2 sells by the hour
// only, so the prices of longer terms and of spot are 0.
func (g gpuType) card(w *objectWriter) {
	w.value("communityPrice", money(g.listed, "price", "community"))
	w.whole("communitySpotPrice", 0)
	w.whole("count", g.count)
	w.text("displayName", g.name())
	w.text("id", g.id)
	w.whole("oneMonthPrice", 0)
	w.whole("oneWeekPrice", 0)
	w.value("securePrice", money(g.listed, "price", "secure"))
	w.whole("secureSpotPrice", 0)
	w.whole("sixMonthPrice", 0)
	w.whole("threeMonthPrice", 0)
}

// cost is the pod's rate, 0 of one that was stopped.
func cost(pod any) any {
	switch translate.Text(pod, "status") {
	case "EXITED", translate.Terminated:
		return 0
	}
	return money(pod, "cost")
}

func withoutKeys(vars map[string]any, hidden []string) map[string]any {
	if len(hidden) == 0 {
		return vars
	}
	out := make(map[string]any, len(vars))
	maps.Copy(out, vars)
	for _, name := range hidden {
		delete(out, name)
	}
	return out
}

func mountPath(pod any) string {
	if path := translate.Text(pod, "mounts", "persistent", "path"); path != "" {
		return path
	}
	for _, mount := range translate.Items(pod, "mounts", "network") {
		if path := translate.Text(mount, "path"); path != "" {
			return path
		}
	}
	return defaultPath
}

func volumeOf(pod any) string {
	for _, mount := range translate.Items(pod, "mounts", "network") {
		return translate.Text(mount, "volumeId")
	}
	return ""
}

func templateOf(pod any, note translate.PodNote) string {
	if note.TemplateID != "" {
		return note.TemplateID
	}
	return translate.Text(pod, "template")
}

// machineID is the machine's part of the SSH proxy's user name.
func machineID(pod any) string {
	id, ok := strings.CutPrefix(translate.Text(pod, "ssh", "proxy", "username"), translate.Text(pod, "id")+"-")
	if !ok {
		return ""
	}
	return id
}

// machineMembers writes the machine. Only what v2 tells is in the short form.
func (p *shownPod) machineMembers(w *objectWriter, gpu gpuType) {
	cloud, centre, full := translate.Text(p.pod, "cloud"), translate.Text(p.pod, "dataCenterId"), p.machine
	if full {
		w.value("costPerHr", cost(p.pod))
		w.whole("cpuCount", max(translate.Whole(p.pod, "gpu", "vcpuCount"), translate.Whole(p.pod, "cpu", "vcpuCount")))
		w.value("currentPricePerGpu", pricePerGPU(p.pod, gpu.count))
	}
	if centre != "" {
		w.text("dataCenterId", centre)
	}
	if full {
		w.whole("diskThroughputMBps", 0)
		w.whole("gpuAvailable", 0)
	}
	if gpu.id != "" {
		w.text("gpuDisplayName", gpu.name())
		if full {
			w.name("gpuType").object(gpu.card)
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
	if full {
		w.flag("supportPublicIp", cloud == "SECURE" || publicIP(p.pod) != "")
	}
}

func pricePerGPU(pod any, count int64) any {
	hourly, _ := translate.Number(cost(pod))
	if count < 2 {
		return cost(pod)
	}
	return hourly / float64(count)
}

// publicIP is the address of the first open TCP port, "" until there is one.
func publicIP(pod any) string {
	for _, port := range openPorts(pod) {
		if ip := translate.Text(port, "ip"); ip != "" {
			return ip
		}
	}
	return ""
}

// portMappings maps private to public TCP ports; null while the pod has no
// runtime.
func portMappings(pod any) any {
	if len(translate.Members(pod, "runtime")) == 0 {
		return nil
	}
	out := map[string]any{}
	for _, port := range openPorts(pod) {
		out[strconv.FormatInt(translate.Whole(port, "private"), 10)] = translate.Whole(port, "public")
	}
	return out
}

// openPorts are the TCP ports that can be reached from outside.
func openPorts(pod any) []any {
	var open []any
	for _, port := range translate.Items(pod, "runtime", "ports") {
		if translate.Text(port, "type") == "tcp" && translate.Whole(port, "public") > 0 {
			open = append(open, port)
		}
	}
	return open
}

func startedAt(pod any) string {
	if s := translate.Text(pod, "startedAt"); s != "" {
		return s
	}
	return translate.Text(pod, "createdAt")
}

// lastStatusChange is a line for people; clients only display it.
func lastStatusChange(pod any) string {
	switch translate.Text(pod, "status") {
	case "EXITED":
		return "Exited by User: " + translate.FormatTime(startedAt(pod), translate.ScriptTime)
	case "ERROR":
		return "Exited with error: " + translate.FormatTime(startedAt(pod), translate.ScriptTime)
	}
	return "Rented by User: " + translate.FormatTime(translate.Text(pod, "createdAt"), translate.ScriptTime)
}

// worker writes a serverless worker as the pod v1 showed it as.
func (r *request) worker(worker any, endpointID string, types []any) *shownPod {
	pod := map[string]any{
		"id": translate.At(worker, "id"), "image": translate.At(worker, "image"), "status": "RUNNING",
		"dataCenterId": translate.At(worker, "dataCenterId"), "startedAt": translate.At(worker, "startedAt"),
		"gpu": map[string]any{"id": translate.At(worker, "gpuTypeId"), "count": translate.At(worker, "gpuCount")},
	}
	return r.pod(pod, podView{types: types, worker: worker, endpointID: endpointID})
}
