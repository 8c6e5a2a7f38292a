package platform

import (
	"math"
	"slices"
	"time"
)

// worker is one worker of an endpoint.
type worker struct {
	ID        string
	Version   int
	Image     string
	Status    string
	Created   time.Time
	Ready     time.Time // when it is up; in the far future while throttled
	IdleSince time.Time
	Job       string // what it is working on
	GPUType   string // empty for CPU workers and while throttled
	DC        string
	Holds     stockKey
	Takes     int // of the stock; zero while throttled
	Rate      amounts
	Env       map[string]string // the environment that the container has, since it booted
}

const (
	workerRunning      = "RUNNING"
	workerIdle         = "IDLE"
	workerInitializing = "INITIALIZING"
	workerThrottled    = "THROTTLED"
	workerUnhealthy    = "UNHEALTHY"
)

// An endpoint lives from event to event: a worker comes up, a job ends or
// expires, a queue has waited long enough, an idle worker is dismissed. Events
// happen at known times, so a look at an endpoint first lets everything happen
// that was due, each at its own instant. Between two events nothing changes.

// advanceLocked brings an account up to now, its events and the end of its
// money in the order in which they fall.
func (s *Server) advanceLocked(a *account, now time.Time) {
	for {
		next := s.nextEventLocked(a)
		at := now
		if next.happen != nil && next.at.Before(now) {
			at = next.at
		}
		if empty, when := a.funds.emptyBy(at); empty {
			a.funds.settle(when)
			a.funds.Balance = 0
			s.stopUnpaidLocked(a, when)
			continue
		}
		if next.happen == nil || next.at.After(now) {
			break
		}
		a.funds.settle(at)
		next.happen(at)
	}
	a.funds.settle(now)
	for _, e := range a.endpoints.order {
		if e.throttled {
			s.scheduleLocked(a, e, now)
		}
	}
}

// suspendLocked takes an endpoint's workers away; what they were doing goes
// back to the queue.
func (s *Server) suspendLocked(a *account, e *endpoint, at time.Time) {
	for _, j := range e.Active {
		if j.Status == jobRunning {
			j.requeue(at)
		}
	}
	for len(e.Fleet) > 0 {
		s.dismissLocked(e, e.Fleet[0])
	}
	s.scheduleLocked(a, e, at)
}

// event is what happens by itself at a known time; one without happen is none.
type event struct {
	at     time.Time
	happen func(at time.Time)
}

// nextEventLocked is the event of an endpoint or a sandbox that comes first.
func (s *Server) nextEventLocked(a *account) (first event) {
	for _, e := range a.endpoints.order {
		if !e.NextAt.IsZero() && (first.happen == nil || e.NextAt.Before(first.at)) {
			first = event{e.NextAt, func(at time.Time) { s.stepLocked(a, e, at) }}
		}
	}
	for _, b := range a.sandboxes.order {
		if due, reason := b.due(); b.EndedAt.IsZero() && (first.happen == nil || due.Before(first.at)) {
			first = event{due, func(at time.Time) { s.endSandboxLocked(a, b, at, reason) }}
		}
	}
	return first
}

// stepLocked lets everything happen that is due at an instant.
func (s *Server) stepLocked(a *account, e *endpoint, at time.Time) {
	for _, w := range e.Fleet {
		if w.Status == workerInitializing && !w.Ready.After(at) {
			w.Status, w.IdleSince = workerIdle, at
		}
	}
	for _, j := range slices.Clone(e.Active) {
		switch {
		case j.Status == jobRunning && !j.Ends.After(at):
			s.endJobLocked(e, j, at)
		case j.Status == jobQueued && !j.Expires.After(at):
			e.end(j, jobTimedOut, at)
		}
	}
	e.releaseBuilds(at, a.ID)
	s.scheduleLocked(a, e, at)
}

// endJobLocked is the end of a running job.
func (s *Server) endJobLocked(e *endpoint, j *job, at time.Time) {
	w := e.worker(j.Worker)
	w.free(at)
	switch j.ending(s.timing.Job) {
	case lost:
		s.dismissLocked(e, w)
		if j.Tries >= maxTries {
			j.Error = "the worker was lost"
			e.end(j, jobFailed, at)
			e.Failed++
			return
		}
		e.Retried++
		j.requeue(at)
	case expired:
		e.drop(j)
	case ranOut:
		e.end(j, jobTimedOut, at)
		e.Failed++
		s.dismissLocked(e, w)
	default:
		status := j.finish()
		e.end(j, status, at)
		if status == jobFailed {
			e.Failed++
		} else {
			e.Completed++
		}
	}
}

func (e *endpoint) worker(id string) *worker {
	for _, w := range e.Fleet {
		if w.ID == id {
			return w
		}
	}
	return nil
}

// free makes a worker idle.
func (w *worker) free(at time.Time) { w.Status, w.Job, w.IdleSince = workerIdle, "", at }

// scheduleLocked puts jobs on workers, brings up workers where there are jobs, and
// dismisses those that are not needed any more. It must follow every change of an
// endpoint.
func (s *Server) scheduleLocked(a *account, e *endpoint, at time.Time) {
	e.forget(at)
	s.replaceStaleLocked(e)
	s.assignLocked(a, e, at)
	target := e.target(at)
	if a.funds.Dry {
		target = 0
	}
	for len(e.Fleet) < target {
		s.hireLocked(a, e, at)
	}
	e.throttled = false
	for _, w := range e.Fleet {
		if w.Status == workerThrottled {
			s.placeWorkerLocked(a, e, w, at)
			e.throttled = e.throttled || w.Status == workerThrottled
		}
	}
	s.layOffLocked(e, target, at)
	s.chargeEndpointLocked(a, e, at)
	e.NextAt = e.next(at)
	a.endpoints.touch(e.ID)
	s.notifyLocked()
}

// replaceStaleLocked lets workers of older versions go, the busy ones after
// their job.
func (s *Server) replaceStaleLocked(e *endpoint) {
	for _, w := range slices.Clone(e.Fleet) {
		if w.Version != e.Version && w.Status != workerRunning {
			s.dismissLocked(e, w)
		}
	}
}

// assignLocked gives queued jobs to idle workers, first come first served.
func (s *Server) assignLocked(a *account, e *endpoint, at time.Time) {
	for _, w := range e.Fleet {
		if w.Status != workerIdle {
			continue
		}
		i := slices.IndexFunc(e.Active, func(j *job) bool { return j.Status == jobQueued })
		if i < 0 {
			return
		}
		s.startLocked(a, e, e.Active[i], w, at)
	}
}

// target is how many workers the endpoint wants.
func (e *endpoint) target(at time.Time) int {
	waiting, overdue, busy := 0, 0, e.InFlight
	delay := time.Duration(e.Scaling.QueueDelay * float64(time.Second))
	for _, j := range e.Active {
		switch {
		case j.Status == jobRunning:
			busy++
		case j.Status == jobQueued && !j.LowPriority:
			waiting++
			if !at.Before(j.Queued.Add(delay)) {
				overdue++
			}
		}
	}
	want := busy + overdue
	if e.Scaling.Type == requestCount {
		want = int(math.Ceil(float64(waiting+busy) / float64(e.Scaling.RequestCount)))
	} else if waiting > 0 {
		want = max(want, 1)
	}
	return min(max(want, e.Min), e.Max)
}

// layOffLocked dismisses idle workers: at once above workers.max, otherwise
// when they have had nothing to do for the idle timeout.
func (s *Server) layOffLocked(e *endpoint, target int, at time.Time) {
	for _, w := range slices.Clone(e.Fleet) {
		if w.Status == workerRunning {
			continue
		}
		patience := time.Duration(e.IdleTimeout) * time.Second
		late := !at.Before(w.IdleSince.Add(patience))
		bored := w.Status == workerIdle && late && e.InFlight == 0 && len(e.Fleet) > target
		sick := w.Status == workerUnhealthy && late
		if len(e.Fleet) > e.Max || bored || sick {
			s.dismissLocked(e, w)
		}
	}
}

// next is when the endpoint's next event falls; zero when nothing is to come.
func (e *endpoint) next(now time.Time) time.Time {
	var first time.Time
	consider := func(at time.Time) {
		if at.After(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, w := range e.Fleet {
		switch {
		case w.Status == workerInitializing:
			consider(w.Ready)
		case w.Status == workerIdle && len(e.Fleet) > e.Min, w.Status == workerUnhealthy:
			consider(w.IdleSince.Add(time.Duration(e.IdleTimeout) * time.Second))
		}
	}
	for _, b := range e.Builds {
		consider(b.endsAt())
	}
	for _, j := range e.Active {
		switch j.Status {
		case jobRunning:
			consider(j.Ends)
		case jobQueued:
			consider(j.Expires)
			if e.Scaling.Type == queueDelay && !j.LowPriority {
				consider(j.Queued.Add(time.Duration(e.Scaling.QueueDelay * float64(time.Second))))
			}
		}
	}
	return first
}

// hireLocked adds a worker, throttled until there is a machine for it.
func (s *Server) hireLocked(a *account, e *endpoint, at time.Time) {
	w := &worker{
		ID: s.newIDLocked(func(id string) bool { return e.worker(id) != nil }), Version: e.Version,
		Image: e.Container.Image, Status: workerThrottled, Created: at, Ready: at.AddDate(1000, 0, 0),
	}
	e.Fleet = append(e.Fleet, w)
	s.placeWorkerLocked(a, e, w, at)
}

// placeWorkerLocked finds a throttled worker a machine, if there is one.
func (s *Server) placeWorkerLocked(a *account, e *endpoint, w *worker, at time.Time) {
	found := e.GPU != nil && s.placeOnGPULocked(e, w) || e.GPU == nil && s.placeOnCPULocked(e, w)
	if !found {
		return
	}
	s.catalog.takeLocked(w.Holds, w.Takes)
	w.DC = w.Holds.DataCenter
	w.Env = a.bootedLocked(e.Container.Env)
	w.Rate[serverlessDiskAmount] = float64(e.Container.Disk) * containerDiskHour
	w.Status, w.Ready = workerInitializing, at.Add(e.coldStart(s.timing.ColdStart))
	if !w.Ready.After(at) {
		w.Status, w.IdleSince = workerIdle, at
	}
}

// coldStart is shortened by FlashBoot.
func (e *endpoint) coldStart(full time.Duration) time.Duration {
	switch e.FlashBoot {
	case "FLASHBOOT":
		return full / 2
	case "PRIORITY_FLASHBOOT":
		return full / 4
	default:
		return full
	}
}

// placeOnGPULocked and placeOnCPULocked pick what a worker is to stand on.
func (s *Server) placeOnGPULocked(e *endpoint, w *worker) bool {
	types, err := s.catalog.inPools(e.GPU)
	if err != nil {
		return false
	}
	r := &gpuRequest{Count: e.GPU.Count, CUDA: e.GPU.CUDA}
	if e.GPU.MinCUDA != "" {
		r.MinCUDA = &e.GPU.MinCUDA
	}
	for _, g := range types {
		r.ID = g.ID
		dc, _, err := s.catalog.placeGPULocked(r, need{cloud: secureCloud, dataCenters: e.DataCenterIDs})
		if err != nil {
			continue
		}
		w.GPUType, w.Holds, w.Takes = g.ID, stockKey{g.ID, secureCloud, dc}, r.Count
		w.Rate[serverlessGPUAmount] = g.Price.Serverless * float64(r.Count)
		return true
	}
	return false
}

func (s *Server) placeOnCPULocked(e *endpoint, w *worker) bool {
	for _, c := range e.CPU {
		f := s.catalog.cpus[c.ID]
		dc, err := s.catalog.placeCPULocked(f, c.VCPU, need{cloud: secureCloud, dataCenters: e.DataCenterIDs})
		if err != nil {
			continue
		}
		w.Holds, w.Takes = stockKey{c.ID, "", dc}, c.VCPU
		w.Rate[serverlessCPUAmount] = f.Serverless * float64(c.VCPU)
		return true
	}
	return false
}

// dismissLocked ends a worker and releases its machine.
func (s *Server) dismissLocked(e *endpoint, w *worker) {
	if w == nil {
		return
	}
	s.catalog.putBackLocked(w.Holds, w.Takes)
	e.Fleet = slices.DeleteFunc(e.Fleet, func(other *worker) bool { return other == w })
}

// chargeEndpointLocked makes the endpoint cost what its workers cost; they are
// free while they come up.
func (s *Server) chargeEndpointLocked(a *account, e *endpoint, at time.Time) {
	var sum amounts
	for _, w := range e.Fleet {
		if w.Status == workerRunning || w.Status == workerIdle || w.Status == workerUnhealthy {
			sum.add(w.Rate, 1)
		}
	}
	a.chargeLocked(meterServerless, e.ID, sum, at)
}
