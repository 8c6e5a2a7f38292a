package v2

import (
	"encoding/json"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// Pod is a view of a pod, or of the body of a request that creates or updates a pod.
type Pod struct{ Container }

// PodOf returns a view of a decoded pod.
func PodOf(body any) Pod { return Pod{ContainerOf(body)} }

// NewPod returns an empty body to write to.
func NewPod() Pod { return Pod{Container{NewObject()}} }

// Clouds, and the pod statuses that translation rules use.
const (
	Secure    = "SECURE"
	Community = "COMMUNITY"

	StatusProvisioning = "PROVISIONING"
	StatusStarting     = "STARTING"
	StatusRunning      = "RUNNING"
	StatusExited       = "EXITED"
	StatusError        = "ERROR"
	StatusTerminated   = "TERMINATED"
)

// Status returns the status.
func (p Pod) Status() string { return p.text("status") }

// Locked reports whether the pod is protected from being stopped.
func (p Pod) Locked() bool { return p.flag("locked") }

// SetLocked sets whether the pod is protected from being stopped.
func (p Pod) SetLocked(on bool) { p.set(on, "locked") }

// Template returns the id of the template that the pod was created from.
func (p Pod) Template() string { return p.text("template") }

// SetTemplateID sets the template whose settings the pod copies.
func (p Pod) SetTemplateID(id string) { p.set(id, "templateId") }

// Cloud returns SECURE or COMMUNITY.
func (p Pod) Cloud() string { return p.text("cloud") }

// SetCloud sets SECURE or COMMUNITY.
func (p Pod) SetCloud(cloud string) { p.set(cloud, "cloud") }

// DataCenter returns the id of the data centre.
func (p Pod) DataCenter() string { return p.text("dataCenterId") }

// SetDataCenters sets the allowed data centres of the pod.
func (p Pod) SetDataCenters(ids []string) { p.set(translate.List(ids), "dataCenterIds") }

// IsCPU reports whether the pod has no GPU.
func (p Pod) IsCPU() bool {
	switch p.at("cpu").(type) {
	case map[string]any, translate.Record:
		return true
	}
	return false
}

// GPU returns the id of the GPU type.
func (p Pod) GPU() string { return p.text("gpu", "id") }

// GPUCount returns the number of GPUs.
func (p Pod) GPUCount() int64 { return p.whole("gpu", "count") }

// SetGPU sets the type and the number of GPUs.
func (p Pod) SetGPU(id string, count int64) {
	p.set(map[string]any{"id": id, "count": translate.Int(count)}, "gpu")
}

// SetCUDAVersions sets the allowed CUDA versions of hosts.
func (p Pod) SetCUDAVersions(list []string) {
	p.set(translate.List(list), "gpu", "allowedCudaVersions")
}

// SetMinCUDA sets the minimum CUDA version of hosts.
func (p Pod) SetMinCUDA(version string) { p.set(version, "gpu", "minCudaVersion") }

// SetMinimums sets the minimum memory in GB and the minimum number of vCPUs, both per GPU. It omits a minimum of 0.
func (p Pod) SetMinimums(memory, vcpus int64) {
	if memory > 0 {
		p.set(translate.Int(memory), "gpu", "minRamPerGpu")
	}
	if vcpus > 0 {
		p.set(translate.Int(vcpus), "gpu", "minVcpuCountPerGpu")
	}
}

// CUDAVersion returns the CUDA version of the host.
func (p Pod) CUDAVersion() string { return p.text("cudaVersion") }

// CPU returns the CPU flavour.
func (p Pod) CPU() string { return p.text("cpu", "id") }

// SetCPU sets the flavour and the number of vCPUs.
func (p Pod) SetCPU(flavour string, vcpus int64) {
	p.set(map[string]any{"id": flavour, "vcpuCount": translate.Int(vcpus)}, "cpu")
}

// VCPUs returns the number of vCPUs.
func (p Pod) VCPUs() int64 {
	if p.IsCPU() {
		return p.whole("cpu", "vcpuCount")
	}
	return p.whole("gpu", "vcpuCount")
}

// Memory returns the memory in GB.
func (p Pod) Memory() int64 {
	if p.IsCPU() {
		return p.whole("cpu", "memory")
	}
	return p.whole("gpu", "memory")
}

// SetStartSSH sets whether the pod runs an SSH server.
func (p Pod) SetStartSSH(on bool) { p.set(on, "startSsh") }

// SetStartJupyter sets whether the pod runs a notebook server.
func (p Pod) SetStartJupyter(on bool) { p.set(on, "startJupyter") }

// SetGlobalNetworking sets whether the pod joins the account's private network.
func (p Pod) SetGlobalNetworking(on bool) { p.set(on, "globalNetworking") }

// NetworkVolume returns the id and the mount path of the network volume.
func (p Pod) NetworkVolume() (id, path string) {
	for _, mount := range p.items("mounts", "network") {
		return translate.Text(mount, "volumeId"), translate.Text(mount, "path")
	}
	return "", ""
}

// VolumeID returns the id of the network volume, or "".
func (p Pod) VolumeID() string {
	id, _ := p.NetworkVolume()
	return id
}

// SetNetworkVolume mounts a network volume and removes any other mount.
func (p Pod) SetNetworkVolume(id, path string) {
	p.set(map[string]any{"network": []any{map[string]any{"volumeId": id, "path": path}}}, "mounts")
}

// MountPath returns the mount path of the persistent or network volume.
func (p Pod) MountPath() string {
	if path := p.PersistentPath(); path != "" {
		return path
	}
	_, path := p.NetworkVolume()
	return path
}

// Cost returns the price per hour in its original spelling, or "".
func (p Pod) Cost() json.Number { return translate.Decimal(p.body(), "cost") }

// CreatedAt returns the creation time (RFC 3339).
func (p Pod) CreatedAt() string { return p.text("createdAt") }

// StartedAt returns the time of the last start (RFC 3339), or "" if the pod has not been started.
func (p Pod) StartedAt() string { return p.text("startedAt") }

// Host returns the user name for the SSH proxy and the id of the machine. The user name consists of the pod id and the machine id. Both
// results are "" until the pod has been placed on a machine.
func (p Pod) Host() (user, machine string) {
	user = p.text("ssh", "proxy", "username")
	machine, ok := strings.CutPrefix(user, p.ID()+"-")
	if !ok {
		machine = ""
	}
	return user, machine
}

// Runtime returns the runtime data of the pod, or nil.
func (p Pod) Runtime() any {
	if r := p.at("runtime"); !translate.Empty(r) {
		return r
	}
	return nil
}

// Port is an open port of a running pod.
type Port struct {
	// IP is the address of the port, or "".
	IP string
	// Type is tcp or http. Clients reach http ports through the platform's proxy.
	Type string
	// Public is the number of the port outside the pod, or 0.
	Private, Public int64
}

// Open reports whether the port is reachable directly from outside, without the proxy.
func (p Port) Open() bool { return p.Type == "tcp" && p.Public > 0 }

// OpenPorts returns the open ports.
func (p Pod) OpenPorts() []Port {
	items := p.items("runtime", "ports")
	ports := make([]Port, len(items))
	for i, item := range items {
		ports[i] = Port{
			IP: translate.Text(item, "ip"), Type: translate.Text(item, "type"),
			Private: translate.Whole(item, "private"), Public: translate.Whole(item, "public"),
		}
	}
	return ports
}

// Cluster returns the pod's cluster and its address in that cluster.
func (p Pod) Cluster() (id, ip string) { return p.text("cluster", "id"), p.text("cluster", "ip") }

// Rank returns the pod's rank in its cluster, or nil.
func (p Pod) Rank() any { return p.at("cluster", "rank") }
