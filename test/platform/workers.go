package platform

import (
	"fmt"
	"slices"
	"time"
)

// workersLocked answers the workers an endpoint has now.
func (x *exchange) workersLocked(e *endpoint) (reply, error) {
	counts := map[string]int{}
	b := appendInt([]byte(`{"endpointVersion":`), e.Version)
	b = appendArray(append(b, `,"workers":`...), e.Fleet, func(b []byte, w *worker) []byte {
		counts[w.Status]++
		return w.append(b, e, x.now)
	})
	b = append(b, `,"summary":{`...)
	for _, one := range [][2]string{
		{"running", workerRunning},
		{"idle", workerIdle},
		{"initializing", workerInitializing},
		{"throttled", workerThrottled},
		{"unhealthy", workerUnhealthy},
	} {
		b = appendInt(append(appendText(b, one[0]), ':'), counts[one[1]])
		b = append(b, ',')
	}
	b = appendInt(append(b, `"total":`...), len(e.Fleet))
	return ok(append(b, `}}`...)), nil
}

func (w *worker) append(b []byte, e *endpoint, now time.Time) []byte {
	gpus := 0
	if e.GPU != nil {
		gpus = e.GPU.Count
	}
	up := !w.Ready.After(now)
	b = appendText(append(b, `{"id":`...), w.ID)
	b = appendText(append(b, `,"status":`...), w.Status)
	b = appendBool(append(b, `,"isStale":`...), w.Version != e.Version)
	b = appendInt(append(b, `,"version":`...), w.Version)
	b = appendInt(append(b, `,"gpuCount":`...), gpus)
	b = appendText(append(b, `,"image":`...), w.Image)
	b = append(b, `,"uptimeSeconds":`...)
	if up {
		b = appendInt(b, int64(now.Sub(w.Ready)/time.Second))
	} else {
		b = append(b, "null"...)
	}
	b = appendTextOrNull(append(b, `,"gpuTypeId":`...), w.GPUType)
	b = appendTextOrNull(append(b, `,"dataCenterId":`...), w.DC)
	started := time.Time{}
	if up {
		started = w.Ready
	}
	return append(appendTimeOrNull(append(b, `,"startedAt":`...), started), '}')
}

func (x *exchange) workerLogLocked(e *endpoint) (func() logState, error) {
	w := e.worker(x.params[1])
	if w == nil {
		return nil, notFound("worker")
	}
	return func() logState {
		life := run{Ordered: w.Created, Booting: w.Ready, Running: w.Ready}
		gone := !slices.Contains(e.Fleet, w) || x.acct.endpoints.get(e.ID) != e
		if gone {
			life.Ended = x.now
		}
		return logState{
			book:    logBook{image: w.Image, runs: []run{life}},
			now:     x.now,
			changed: x.s.changedLocked(),
			gone:    gone,
		}
	}, nil
}

// SetWorkerUnhealthy makes a worker of an endpoint fail its health checks from
// now on: it takes no more jobs and is dismissed after the idle timeout.
func (s *Server) SetWorkerUnhealthy(endpointID, workerID string) error {
	s.mu.Lock()
	defer s.release()
	for _, a := range s.accounts {
		e := a.endpoints.get(endpointID)
		if e == nil {
			continue
		}
		now := s.clock.Now()
		s.advanceLocked(a, now)
		w := e.worker(workerID)
		if w == nil || w.Status == workerRunning {
			return fmt.Errorf("endpoint %s has no idle worker %q", endpointID, workerID)
		}
		w.Status, w.IdleSince = workerUnhealthy, now
		s.scheduleLocked(a, e, now)
		return nil
	}
	return fmt.Errorf("no endpoint is called %q", endpointID)
}
