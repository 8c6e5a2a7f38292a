package platform

import (
	"slices"
	"time"
)

// workersLocked answers the workers an endpoint has now.
func (x *exchange) workersLocked(e *endpoint) (reply, error) {
	counts := map[string]int{}
	for _, w := range e.Fleet {
		counts[w.Status]++
	}
	workers := objects(e.Fleet, func(w *worker) object { return w.record(e, x.now) })
	return ok(object{"endpointVersion", e.Version, "workers", workers, "summary", object{
		"running", counts[workerRunning], "idle", counts[workerIdle], "initializing", counts[workerInitializing],
		"throttled", counts[workerThrottled], "unhealthy", counts[workerUnhealthy], "total", len(e.Fleet),
	}}), nil
}

func (w *worker) record(e *endpoint, now time.Time) object {
	gpus, started, uptime := 0, time.Time{}, any(nil)
	if e.GPU != nil {
		gpus = e.GPU.Count
	}
	if !w.Ready.After(now) {
		started, uptime = w.Ready, int64(now.Sub(w.Ready)/time.Second)
	}
	return object{
		"id", w.ID, "status", w.Status, "isStale", w.Version != e.Version, "version", w.Version, "gpuCount", gpus, "image", w.Image,
		"uptimeSeconds", uptime, "gpuTypeId", optional(w.GPUType), "dataCenterId", optional(w.DC), "startedAt", started,
	}
}

func (x *exchange) workerLogLocked(e *endpoint) (func() (logBook, bool), error) {
	w := e.worker(x.params[1])
	if w == nil {
		return nil, notFound("worker")
	}
	return func() (logBook, bool) {
		life := run{Ordered: w.Created, Booting: w.Ready, Running: w.Ready}
		gone := !slices.Contains(e.Fleet, w) || x.acct.endpoints.get(e.ID) != e
		if gone {
			life.Ended = x.now
		}
		return logBook{w.Image, []run{life}}, gone
	}, nil
}
