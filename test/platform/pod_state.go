package platform

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// openPodLocked takes the stock of a pod that was just placed and starts it.
func (s *Server) openPodLocked(a *account, p *pod, now time.Time) {
	s.catalog.takeLocked(p.kind())
	booting := now.Add(s.timing.Provision)
	p.bootLocked(a, run{Ordered: now, Booting: booting, Running: booting.Add(s.timing.Boot)})
	s.chargePodLocked(a, p, now)
}

// startPodLocked brings a stopped or failed pod up again, on the host it had.
func (s *Server) startPodLocked(a *account, p *pod, now time.Time) error {
	if !p.holdsMachine() && !s.catalog.takeLocked(p.kind()) {
		return badRequest(noCapacity)
	}
	p.Failed = false
	p.bootLocked(a, run{Ordered: now, Booting: now, Running: now.Add(s.timing.Boot)})
	s.chargePodLocked(a, p, now)
	return nil
}

// bootLocked begins a run of the container, with the environment and the network that the
// pod is to have from now on.
func (p *pod) bootLocked(a *account, r run) {
	p.Runs = append(p.Runs, r)
	p.Booted = a.bootedLocked(p.Container.Env)
	p.applyNetworking()
}

// stopPodLocked releases the machine; disk, assignment and CUDA version stay.
func (s *Server) stopPodLocked(a *account, p *pod, now time.Time) {
	if p.holdsMachine() {
		s.catalog.putBackLocked(p.kind())
	}
	p.Failed = false
	if last := p.lastRun(); last.Ended.IsZero() {
		last.Ended = now
	}
	s.chargePodLocked(a, p, now)
}

// restartPodLocked starts the container anew without leaving RUNNING.
func (s *Server) restartPodLocked(a *account, p *pod, now time.Time) {
	p.lastRun().Ended = now
	p.bootLocked(a, run{Ordered: now, Booting: now, Running: now, Restart: true})
	s.podChangedLocked(a, p)
}

// terminatePodLocked ends a pod for good; network volumes are only detached.
func (s *Server) terminatePodLocked(a *account, p *pod, now time.Time) {
	if p.holdsMachine() {
		s.catalog.putBackLocked(p.kind())
	}
	a.pods.remove(p.ID)
	if p.Cluster == nil {
		a.chargeLocked(meterPod, p.ID, amounts{}, now)
	} else {
		s.chargeClusterLocked(a, p.Cluster.ID, now)
	}
	s.notifyLocked()
}

// failPodLocked is an unrecoverable error of the container.
func (s *Server) failPodLocked(a *account, p *pod, now time.Time) {
	if last := p.lastRun(); last.Ended.IsZero() {
		last.Ended = now
		p.Failed = true
	}
	s.podChangedLocked(a, p)
}

// stopUnpaidLocked is what happens when the money is gone: clusters and sandboxes end,
// endpoints lose their workers, pods stop, and those that keep nothing on a network volume are terminated.
func (s *Server) stopUnpaidLocked(a *account, at time.Time) {
	for _, c := range slices.Clone(a.clusters.order) {
		s.deleteClusterLocked(a, c, at)
	}
	for _, e := range a.endpoints.order {
		s.suspendLocked(a, e, at)
	}
	for _, b := range a.sandboxes.order {
		s.endSandboxLocked(a, b, at, endedUnpaid)
	}
	for _, p := range slices.Clone(a.pods.order) {
		switch {
		case !p.holdsMachine():
		case p.Mounts.Network != nil:
			s.stopPodLocked(a, p, at)
		default:
			s.terminatePodLocked(a, p, at)
		}
	}
}

// chargePodLocked makes the pod cost what it costs in the state it is in.
func (s *Server) chargePodLocked(a *account, p *pod, now time.Time) {
	if p.Cluster == nil {
		a.chargeLocked(meterPod, p.ID, p.rate(), now)
	} else {
		s.chargeClusterLocked(a, p.Cluster.ID, now)
	}
	s.podChangedLocked(a, p)
}

// podChangedLocked is called after every change of a pod that still exists.
func (s *Server) podChangedLocked(a *account, p *pod) {
	a.pods.touch(p.ID)
	s.notifyLocked()
}

// rate is what the pod costs per hour in the state it is in.
func (p *pod) rate() amounts {
	var r amounts
	persistent := 0.0
	if p.Mounts.Persistent != nil {
		persistent = float64(p.Mounts.Persistent.Size)
	}
	if !p.holdsMachine() {
		r[podDiskAmount] = persistent * persistentDownHour
		return r
	}
	r[podDiskAmount] = float64(p.Container.Disk)*containerDiskHour + persistent*persistentUpHour
	if p.GPU != nil {
		r[podGPUAmount] = p.Rate
	} else {
		r[podCPUAmount] = p.Rate
	}
	return r
}

// applyNetworking gives or takes the address on the global network, which
// happens at a start only.
func (p *pod) applyNetworking() {
	p.GlobalIP = ""
	if p.Wanted {
		n := p.digest("global")
		p.GlobalIP = "10." + strconv.Itoa(int(n>>16&255)) + "." + strconv.Itoa(int(n>>8&255)) + "." + strconv.Itoa(int(n%254)+1)
	}
}

// notifyLocked wakes everyone who waits for a change of state.
func (s *Server) notifyLocked() {
	if s.waiting {
		close(s.changed)
		s.changed = make(chan struct{})
		s.waiting = false
	}
}

// changedLocked is closed at the next change of state.
func (s *Server) changedLocked() <-chan struct{} {
	s.waiting = true
	return s.changed
}

// PodChange is a change of a pod behind its owner's back; nil members stay.
type PodChange struct {
	// Status is RUNNING, EXITED, ERROR, or TERMINATED, which removes the pod.
	Status *string `json:"status,omitempty"`
	Name   *string `json:"name,omitempty"`
	// Cost is what the pod's machine costs per hour from now on, in USD.
	Cost   *float64 `json:"cost,omitempty"`
	Locked *bool    `json:"locked,omitempty"`
	// GPUUtil and CPUUtil are what its runtime reports of its GPUs and processors from
	// now on, in percent.
	GPUUtil *int `json:"gpuUtil,omitempty"`
	CPUUtil *int `json:"cpuUtil,omitempty"`
}

// ChangePod changes a pod of any account, as the platform might by itself.
func (s *Server) ChangePod(podID string, c PodChange) error {
	return pods().alter(s, podID, func(a *account, p *pod, now time.Time) error { return s.changePodLocked(a, p, c, now) })
}

func (s *Server) changePodLocked(a *account, p *pod, c PodChange, now time.Time) error {
	for _, util := range []*int{c.GPUUtil, c.CPUUtil} {
		if util != nil && (*util < 0 || *util > 100) {
			return fmt.Errorf("use of %d percent: must be from 0 to 100", *util)
		}
	}
	set(&p.Name, c.Name)
	set(&p.Locked, c.Locked)
	p.GPUUtil, p.CPUUtil = cmp.Or(c.GPUUtil, p.GPUUtil), cmp.Or(c.CPUUtil, p.CPUUtil)
	s.podChangedLocked(a, p)
	if c.Cost != nil {
		p.Rate = *c.Cost
		s.chargePodLocked(a, p, now)
	}
	if c.Status != nil {
		return s.forceStatusLocked(a, p, *c.Status, now)
	}
	return nil
}

func (s *Server) forceStatusLocked(a *account, p *pod, status string, now time.Time) error {
	switch status {
	case statusRunning:
		if !p.holdsMachine() || p.Failed {
			if err := s.startPodLocked(a, p, now); err != nil {
				return err
			}
		}
		last := p.lastRun()
		last.Booting, last.Running = earliest(last.Booting, now), earliest(last.Running, now)
		s.podChangedLocked(a, p)
	case statusExited:
		s.stopPodLocked(a, p, now)
	case statusError:
		s.failPodLocked(a, p, now)
	case "TERMINATED":
		s.terminatePodLocked(a, p, now)
	default:
		return fmt.Errorf("a pod cannot be made %q", status)
	}
	return nil
}
