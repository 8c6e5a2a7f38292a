package platform

import (
	"slices"
	"time"
)

// The states of a pod. TERMINATED pods are gone: no record carries it.
const (
	statusProvisioning = "PROVISIONING"
	statusStarting     = "STARTING"
	statusRunning      = "RUNNING"
	statusExited       = "EXITED"
	statusError        = "ERROR"
)

// pod is one pod. What it is doing follows from its runs and the clock.
type pod struct {
	ID        string
	Name      string
	Container container
	GPU       *podGPU // exactly one of GPU and CPU
	CPU       *podCPU
	Cloud     string
	DC        string
	CUDA      string // of the host; empty is unknown or not applicable
	Mounts    mounts
	Locked    bool
	Wanted    bool   // global networking, from the next start on
	GlobalIP  string // global networking, now; empty is off
	Rate      float64
	Cluster   *membership
	CreatedAt time.Time
	Failed    bool // ERROR, until the next start; the machine stays rented
	GPUUtil   *int // percent; nil is a figure of its own
	CPUUtil   *int
	Runs      []run
	Booted    map[string]string // the environment that the container has, since its last boot
}

type podGPU struct {
	ID     string
	Count  int
	VCPU   int // over all cards
	Memory int // GB of the host, over all cards
}

type podCPU struct {
	ID     string
	VCPU   int
	Memory int // GB
}

// membership is what a pod that belongs to a cluster carries.
type membership struct {
	ID, Role, IP string
	Rank         int
}

// run is one life of the container: from the order to start it, through the
// allocation of a machine, until it ended.
type run struct {
	Ordered time.Time
	Booting time.Time // the machine is allocated: STARTING
	Running time.Time
	Ended   time.Time // zero while it goes on
	Restart bool      // in place: the container was running before
}

func (p *pod) lastRun() *run { return &p.Runs[len(p.Runs)-1] }

// statusAt is the pod's state at now.
func (p *pod) statusAt(now time.Time) string {
	last := p.lastRun()
	switch {
	case p.Failed:
		return statusError
	case !last.Ended.IsZero():
		return statusExited
	case !now.Before(last.Running):
		return statusRunning
	case !now.Before(last.Booting):
		return statusStarting
	default:
		return statusProvisioning
	}
}

// placed reports whether a machine was ever assigned; it stays assigned.
func (p *pod) placed(now time.Time) bool {
	if len(p.Runs) > 1 {
		return true
	}
	first := p.Runs[0]
	return !now.Before(first.Booting) && (first.Ended.IsZero() || !first.Ended.Before(first.Booting))
}

// startedAt is when the container last came up; zero before the first time.
func (p *pod) startedAt(now time.Time) time.Time {
	for _, r := range slices.Backward(p.Runs) {
		if !now.Before(r.Running) && (r.Ended.IsZero() || !r.Ended.Before(r.Running)) {
			return r.Running
		}
	}
	return time.Time{}
}

// actions are the actions valid in a state.
func actions(status string) []string {
	switch status {
	case statusProvisioning, statusStarting:
		return []string{"stop", "terminate"}
	case statusRunning:
		return []string{"stop", "restart", "terminate"}
	default:
		return []string{"start", "terminate"}
	}
}

// holdsMachine reports whether the pod takes up stock and costs money.
func (p *pod) holdsMachine() bool { return p.Failed || p.lastRun().Ended.IsZero() }

// kind is the stock the pod is made of, and how much of it.
func (p *pod) kind() (key stockKey, n int) {
	if p.GPU != nil {
		return stockKey{p.GPU.ID, p.Cloud, p.DC}, p.GPU.Count
	}
	return stockKey{p.CPU.ID, "", p.DC}, p.CPU.VCPU
}

// digest is a number that belongs to the pod and salt, always the same one: for
// addresses and figures that must differ between pods and stay put.
func (p *pod) digest(salt string) uint32 { return digest(p.ID, salt) }

// digest is FNV-1a over its arguments.
func digest(parts ...string) uint32 {
	h := uint32(2166136261)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * 16777619
		}
	}
	return h
}
