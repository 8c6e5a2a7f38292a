package platform

import (
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

// append writes the pod's record as it is at now. A pod just created shows an
// empty runtime instead of none.
func (p *pod) append(b []byte, now time.Time, created bool) []byte {
	status := p.statusAt(now)
	b = appendText(append(b, `{"id":`...), p.ID)
	b = appendText(append(b, `,"name":`...), p.Name)
	b = appendText(append(b, `,"status":`...), status)
	b = appendTexts(append(b, `,"actions":`...), actions(status))
	b = append(b, ',')
	b = p.Container.appendMembers(b)
	b = p.Mounts.append(append(b, `,"mounts":`...))
	b = p.appendCompute(b)
	b = appendText(append(b, `,"cloud":`...), p.Cloud)
	b = appendTextOrNull(append(b, `,"dataCenterId":`...), p.DC)
	b = appendTextOrNull(append(b, `,"cudaVersion":`...), p.CUDA)
	b = p.appendSSH(append(b, `,"ssh":`...), now)
	b = p.appendCluster(b, now)
	b = append(b, `,"template":null,"cost":`...)
	if p.holdsMachine() {
		b = appendNumber(b, p.Rate)
	} else {
		b = append(b, '0')
	}
	b = strconv.AppendBool(append(b, `,"locked":`...), p.Locked)
	b = p.appendNetworking(b)
	switch {
	case created:
		b = append(b, `,"runtime":{}`...)
	case status == statusRunning:
		b = p.appendRuntime(append(b, `,"runtime":`...), now)
	default:
		b = append(b, `,"runtime":null`...)
	}
	b = appendTime(append(b, `,"createdAt":`...), p.CreatedAt)
	return append(appendTimeOrNull(append(b, `,"startedAt":`...), p.startedAt(now)), '}')
}

func (p *pod) appendCompute(b []byte) []byte {
	if g := p.GPU; g != nil {
		b = appendText(append(b, `,"gpu":{"id":`...), g.ID)
		b = appendInt(append(b, `,"count":`...), g.Count)
		b = appendInt(append(b, `,"vcpuCount":`...), g.VCPU)
		return append(appendInt(append(b, `,"memory":`...), g.Memory), '}')
	}
	return p.CPU.append(append(b, `,"cpu":`...))
}

func (c podCPU) append(b []byte) []byte {
	b = appendText(append(b, `{"id":`...), c.ID)
	b = appendInt(append(b, `,"vcpuCount":`...), c.VCPU)
	return append(appendInt(append(b, `,"memory":`...), c.Memory), '}')
}

func (p *pod) appendNetworking(b []byte) []byte {
	if p.GlobalIP == "" {
		return append(b, `,"globalNetworking":{"enabled":false}`...)
	}
	b = appendText(append(b, `,"globalNetworking":{"enabled":true,"ip":`...), p.GlobalIP)
	return append(appendText(append(b, `,"internalDns":`...), p.ID+"."+internalDNS), '}')
}

// appendCluster writes the membership; place and address come with the machine.
func (p *pod) appendCluster(b []byte, now time.Time) []byte {
	if p.Cluster == nil {
		return b
	}
	b = appendText(append(b, `,"cluster":{"id":`...), p.Cluster.ID)
	if p.placed(now) {
		b = appendInt(append(b, `,"rank":`...), p.Cluster.Rank)
	} else {
		b = append(b, `,"rank":null`...)
	}
	if p.Cluster.Role != "" {
		b = appendText(append(b, `,"role":`...), p.Cluster.Role)
	}
	if p.placed(now) {
		b = appendText(append(b, `,"ip":`...), p.Cluster.IP)
	}
	return append(b, '}')
}

// appendSSH writes the ways in: through the proxy once there is a machine, and
// directly while 22/tcp is reachable.
func (p *pod) appendSSH(b []byte, now time.Time) []byte {
	b = append(b, `{"proxy":`...)
	if p.placed(now) {
		user := p.ID + "-" + hex8(p.digest("proxy"))
		b = appendEndpoint(b, proxyHost, 22, user, "ssh "+user+"@"+proxyHost)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"direct":`...)
	if port := p.publicPort("22/tcp"); port > 0 && p.statusAt(now) == statusRunning {
		ip := p.publicIP()
		b = appendEndpoint(b, ip, port, "root", "ssh root@"+ip+" -p "+strconv.Itoa(port))
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

func appendEndpoint(b []byte, host string, port int, user, command string) []byte {
	b = appendText(append(b, `{"host":`...), host)
	b = appendInt(append(b, `,"port":`...), port)
	b = appendText(append(b, `,"username":`...), user)
	return append(appendText(append(b, `,"command":`...), command), '}')
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

// appendRuntime writes what a running pod reports of itself.
func (p *pod) appendRuntime(b []byte, now time.Time) []byte {
	load, step := int(p.digest("load")%60), 1 // 0 to 59, so that nothing exceeds 100
	if p.Container.Command.sleeps() {
		load, step = 0, 0
	}
	cpu := load
	if p.CPUUtil != nil {
		cpu = *p.CPUUtil
	}
	b = appendInt(append(b, `{"uptime":`...), int64(now.Sub(p.lastRun().Running)/time.Second))
	b = append(b, `,"gpus":[`...)
	if p.GPU != nil {
		for i := range p.GPU.Count {
			if i > 0 {
				b = append(b, ',')
			}
			util := load + step*(i%30)
			if p.GPUUtil != nil {
				util = *p.GPUUtil
			}
			b = appendInt(append(b, `{"util":`...), util)
			b = append(appendInt(append(b, `,"memoryUtil":`...), load/2+step*(i%30)), '}')
		}
	}
	b = appendInt(append(b, `],"cpu":{"util":`...), cpu)
	b = appendInt(append(b, `},"memory":{"util":`...), load/3+5)
	return appendList(append(b, `},"ports":`...), p.Container.Ports, p.appendPort)
}

// appendPort writes one port: a tcp port with its public address, an http port
// with the one inside the data center that the proxy forwards to.
func (p *pod) appendPort(b []byte, one string) []byte {
	number, protocol, _ := strings.Cut(one, "/")
	private, _ := strconv.Atoi(number) // checked when it was set
	b = appendInt(append(b, `{"private":`...), private)
	ip := p.publicIP()
	if protocol == "http" {
		ip = p.proxiedIP()
	}
	b = appendInt(append(b, `,"public":`...), p.publicPort(one))
	b = appendText(append(b, `,"type":`...), protocol)
	return append(appendText(append(b, `,"ip":`...), ip), '}')
}
