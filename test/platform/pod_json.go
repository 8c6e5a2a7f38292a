package platform

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The addresses pods are given come from blocks that are set aside for
// documentation and private use.
const (
	proxyHost   = "ssh.platform.test"
	internalDNS = "pods.internal"
)

// showPod is the pod's record as it is now. A pod just created shows an empty runtime instead of none.
func (x *exchange) showPod(p *pod) object {
	now, status := x.now, p.statusAt(x.now)
	o := append(object{"id", p.ID, "name", p.Name, "status", status, "actions", actions(status)}, p.Container.members()...)
	o = append(o, "mounts", p.Mounts.record())
	if g := p.GPU; g != nil {
		o = append(o, "gpu", object{"id", g.ID, "count", g.Count, "vcpuCount", g.VCPU, "memory", g.Memory})
	} else {
		o = append(o, "cpu", p.CPU.record())
	}
	o = append(o, "cloud", p.Cloud, "dataCenterId", optional(p.DC), "cudaVersion", optional(p.CUDA), "ssh", p.ssh(now))
	if p.Cluster != nil {
		o = append(o, "cluster", p.membership(now))
	}
	cost, networking, runtime := 0.0, object{"enabled", false}, any(nil)
	if p.holdsMachine() {
		cost = p.Rate
	}
	if p.GlobalIP != "" {
		networking = object{"enabled", true, "ip", p.GlobalIP, "internalDns", p.ID + "." + internalDNS}
	}
	if x.route.operation == "createPod" {
		runtime = object{}
	} else if status == statusRunning {
		runtime = p.runtime(now)
	}
	return append(o, "template", nil, "cost", cost, "locked", p.Locked, "globalNetworking", networking, "runtime", runtime,
		"createdAt", p.CreatedAt, "startedAt", p.startedAt(now))
}

func (c podCPU) record() object { return object{"id", c.ID, "vcpuCount", c.VCPU, "memory", c.Memory} }

// membership is what the record says of the pod's cluster; place and address come with the machine.
func (p *pod) membership(now time.Time) object {
	rank, placed := any(nil), p.placed(now)
	if placed {
		rank = p.Cluster.Rank
	}
	o := object{"id", p.Cluster.ID, "rank", rank}
	if p.Cluster.Role != "" {
		o = append(o, "role", p.Cluster.Role)
	}
	if placed {
		o = append(o, "ip", p.Cluster.IP)
	}
	return o
}

// ssh is the ways in: through the proxy once there is a machine, and directly while 22/tcp is
// reachable.
func (p *pod) ssh(now time.Time) object {
	var proxy, direct any
	if p.placed(now) {
		user := p.ID + "-" + hex8(p.digest("proxy"))
		proxy = object{"host", proxyHost, "port", 22, "username", user, "command", "ssh " + user + "@" + proxyHost}
	}
	if port := p.publicPort("22/tcp"); port > 0 && p.statusAt(now) == statusRunning {
		ip := p.publicIP()
		direct = object{"host", ip, "port", port, "username", "root", "command", "ssh root@" + ip + " -p " + strconv.Itoa(port)}
	}
	return object{"proxy", proxy, "direct", direct}
}

func hex8(n uint32) string { return fmt.Sprintf("%08x", n) }

// publicIP is an address of the block 203.0.113.0/24 (RFC 5737).
func (p *pod) publicIP() string {
	return "203.0.113." + strconv.Itoa(int(p.digest("ip")%254)+1)
}

// proxiedIP is the pod's address for the proxy, in the block 100.65.0.0/16 of
// the shared address space (RFC 6598).
func (p *pod) proxiedIP() string {
	n := p.digest("proxied")
	return "100.65." + strconv.Itoa(int(n>>8&255)) + "." + strconv.Itoa(int(n%254)+1)
}

// publicPort is the number under which a port of the pod can be reached from
// outside the container; zero when the pod has no such port. It changes with
// every start.
func (p *pod) publicPort(port string) int {
	for i, one := range p.Container.Ports {
		if one != port {
			continue
		}
		number, _, _ := strings.Cut(one, "/")
		if n, err := strconv.Atoi(number); err == nil && n > 70000 {
			return n
		}
		return 10000 + int(p.digest(strconv.Itoa(len(p.Runs)))%40000) + i
	}
	return 0
}

// runtime is what a running pod reports of itself.
func (p *pod) runtime(now time.Time) object {
	load, step := int(p.digest("load")%60), 1 // 0 to 59, so that nothing exceeds 100
	if p.Container.Command.sleeps() {
		load, step = 0, 0
	}
	gpus := []object{}
	if p.GPU != nil {
		for i := range p.GPU.Count {
			util := *cmp.Or(p.GPUUtil, new(load+step*(i%30)))
			gpus = append(gpus, object{"util", util, "memoryUtil", load/2 + step*(i%30)})
		}
	}
	return object{
		"uptime", int64(now.Sub(p.lastRun().Running) / time.Second), "gpus", gpus, "cpu",
		object{"util", *cmp.Or(p.CPUUtil, &load)},
		"memory",
		object{"util", load/3 + 5},
		"ports", objects(p.Container.Ports, p.port),
	}
}

// port is one port: a tcp port with its public address, an http port with the one inside the
// data center that the proxy forwards to.
func (p *pod) port(one string) object {
	number, protocol, _ := strings.Cut(one, "/")
	private, _ := strconv.Atoi(number) // checked when it was set
	ip := p.publicIP()
	if protocol == "http" {
		ip = p.proxiedIP()
	}
	return object{"private", private, "public", p.publicPort(one), "type", protocol, "ip", ip}
}
