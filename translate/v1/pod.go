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
}

// pod writes a v2 pod in v1's shape, the documented names and those seen on the
// wire together.
func (r *request) pod(pod any, view podView) map[string]any {
	command := translate.CommandOf(pod)
	out := map[string]any{
		"id": translate.Text(pod, "id"), "name": translate.Text(pod, "name"),
		"desiredStatus": desired(pod, view.intent),
		"image":         translate.Text(pod, "image"), "imageName": translate.Text(pod, "image"),
		"env":   withoutKeys(object(pod, "env"), view.note.InjectedEnv),
		"ports": translate.List(translate.Texts(pod, "ports")),

		"dockerEntrypoint": translate.List(command.Entrypoint), "dockerStartCmd": translate.List(command.Cmd),
		"containerDiskInGb": translate.Whole(pod, "disk"),
		"volumeInGb":        translate.Whole(pod, "mounts", "persistent", "size"),
		"volumeMountPath":   mountPath(pod),

		"containerRegistryAuthId": translate.Text(pod, "registry"),
		"costPerHr":               cost(pod), "adjustedCostPerHr": cost(pod),
		"gpuCount":  translate.Whole(pod, "gpu", "count"),
		"machineId": machineID(pod), "machine": r.machine(pod, view),
		"publicIp": publicIP(pod), "portMappings": portMappings(pod),
		"lastStartedAt": r.time(startedAt(pod)), "createdAt": r.time(translate.Text(pod, "createdAt")),
		"lastStatusChange": lastStatusChange(pod),
		"locked":           translate.Flag(pod, "locked"),
		"interruptible":    false, "volumeEncrypted": false, "savingsPlans": []any{},
		"templateId":     templateOf(pod, view.note),
		"consumerUserId": translate.UserID(r.Account()),
	}
	compute(out, pod, view.types)
	if id := volumeOf(pod); id != "" {
		out["networkVolumeId"] = id
	}
	if view.volume != nil {
		out["networkVolume"] = view.volume
	}
	if view.template != nil {
		out["template"] = view.template
	}
	return out
}

// compute adds the members of the pod's compute family.
func compute(out map[string]any, pod any, types []any) {
	family := "gpu"
	if translate.Members(pod, "cpu") != nil {
		family = "cpu"
	}
	out["vcpuCount"] = translate.Whole(pod, family, "vcpuCount")
	out["memoryInGb"] = translate.Whole(pod, family, "memory")
	if family == "cpu" {
		out["cpuFlavorId"] = translate.Text(pod, "cpu", "id")
		return
	}
	if id := translate.Text(pod, "gpu", "id"); id != "" {
		out["gpuTypeId"] = id
		out["gpu"] = gpuCard(id, translate.Whole(pod, "gpu", "count"), types)
	}
}

// gpuCard describes a GPU type with its catalog name and prices. v2 sells by the
// hour only, so the prices of longer terms and of spot are 0.
func gpuCard(id string, count int64, types []any) map[string]any {
	record := translate.ByID(types, id)
	return map[string]any{
		"id": id, "count": count, "displayName": cardName(id, record),
		"securePrice": money(record, "price", "secure"), "communityPrice": money(record, "price", "community"),
		"oneWeekPrice": 0, "oneMonthPrice": 0, "threeMonthPrice": 0, "sixMonthPrice": 0,
		"secureSpotPrice": 0, "communitySpotPrice": 0,
	}
}

// cardName is the catalog's name of a GPU type, its id when there is none.
func cardName(id string, record any) string {
	return cmp.Or(translate.Text(record, "name"), id)
}

func desired(pod any, intent string) string {
	if intent != "" {
		return intent
	}
	return translate.DesiredStatus(translate.Text(pod, "status"))
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

// machine is never null. Only what v2 tells is in the short form.
func (r *request) machine(pod any, view podView) map[string]any {
	out := map[string]any{}
	if id := translate.Text(pod, "gpu", "id"); id != "" {
		out["gpuTypeId"] = id
		out["gpuDisplayName"] = cardName(id, translate.ByID(view.types, id))
	}
	if id := translate.Text(pod, "dataCenterId"); id != "" {
		out["dataCenterId"] = id
		out["location"] = translate.Location(id)
	}
	if cloud := translate.Text(pod, "cloud"); cloud != "" {
		out["secureCloud"] = cloud == "SECURE"
	}
	if !view.machine {
		return out
	}
	count := translate.Whole(pod, "gpu", "count")
	if id, ok := out["gpuTypeId"].(string); ok {
		out["gpuType"] = gpuCard(id, count, view.types)
	}
	out["costPerHr"] = cost(pod)
	out["currentPricePerGpu"] = pricePerGPU(pod, count)
	out["cpuCount"] = max(translate.Whole(pod, "gpu", "vcpuCount"), translate.Whole(pod, "cpu", "vcpuCount"))
	out["minPodGpuCount"] = 1
	out["supportPublicIp"] = translate.Text(pod, "cloud") == "SECURE" || publicIP(pod) != ""
	for _, name := range [...]string{"maintenanceStart", "maintenanceEnd", "maintenanceNote"} {
		out[name] = nil
	}
	out["note"] = ""
	for _, name := range [...]string{"gpuAvailable", "diskThroughputMBps", "maxDownloadSpeedMbps", "maxUploadSpeedMbps"} {
		out[name] = 0
	}
	return out
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

// time writes a time in v1's layout.
func (r *request) time(s string) string { return translate.FormatTime(s, r.api.timeLayout) }

// lastStatusChange is a line for people; clients only display it.
func lastStatusChange(pod any) string {
	at := translate.FormatTime(startedAt(pod), translate.ScriptTime)
	switch translate.Text(pod, "status") {
	case "EXITED":
		return "Exited by User: " + at
	case "ERROR":
		return "Exited with error: " + at
	}
	return "Rented by User: " + translate.FormatTime(translate.Text(pod, "createdAt"), translate.ScriptTime)
}

// worker writes a serverless worker as the pod v1 showed it as.
func (r *request) worker(worker any, endpointID string, types []any) map[string]any {
	pod := map[string]any{
		"id": worker.(map[string]any)["id"], "image": translate.At(worker, "image"), "status": "RUNNING",
		"dataCenterId": translate.At(worker, "dataCenterId"), "startedAt": translate.At(worker, "startedAt"),
	}
	if id := translate.Text(worker, "gpuTypeId"); id != "" {
		pod["gpu"] = map[string]any{"id": id, "count": translate.At(worker, "gpuCount")}
	}
	out := r.pod(pod, podView{types: types})
	out["gpuCount"] = translate.Whole(worker, "gpuCount")
	out["endpointId"] = endpointID
	out["slsVersion"] = translate.Whole(worker, "version")
	out["aiApiId"] = nil
	out["workerStatus"] = translate.Text(worker, "status")
	return out
}
