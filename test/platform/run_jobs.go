package platform

import "encoding/json"

// ownJobLocked is the job the path names, with its endpoint; that is nil for a
// public model's.
func (x *exchange) ownJobLocked() (*endpoint, *job, error) {
	if _, isPublic := publicModel(x.params[0]); isPublic {
		j := x.acct.publicJobs.get(x.params[1])
		if j == nil || j.forgotten(x.now) {
			return nil, nil, notFound("job")
		}
		x.settlePublicLocked(j)
		return nil, j, nil
	}
	e, err := x.queueLocked()
	if err != nil {
		return nil, nil, err
	}
	j := e.job(x.params[1], x.now)
	if j == nil {
		return nil, nil, notFound("job")
	}
	return e, j, nil
}

// onJob is an operation on the job that the path names, with the state in hand.
func onJob(f func(x *exchange, e *endpoint, j *job) (reply, error)) handler {
	return locked(func(x *exchange) (reply, error) {
		e, j, err := x.ownJobLocked()
		if err != nil {
			return reply{}, err
		}
		return f(x, e, j)
	})
}

func (x *exchange) jobStatusLocked(e *endpoint, j *job) (reply, error) {
	leave, err := x.enterLocked(e)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	return ok(j.record()), nil
}

func (x *exchange) jobStatusSync() (reply, error) {
	wait, _, err := x.waitParameter()
	if err != nil {
		return reply{}, err
	}
	return onJob(func(x *exchange, e *endpoint, j *job) (reply, error) {
		return x.awaitLocked(e, j, x.now.Add(wait))
	})(x)
}

// jobStreamLocked answers the chunks yielded since the last call.
func (x *exchange) jobStreamLocked(e *endpoint, j *job) (reply, error) {
	leave, err := x.enterLocked(e)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	if e != nil {
		x.acct.endpoints.touch(e.ID)
	}
	from, to := j.Delivered, max(j.Delivered, j.yielded(x.now))
	j.Delivered = to
	chunks := objects(j.Script.Chunks[from:to], func(chunk json.RawMessage) object { return object{"output", chunk} })
	return ok(object{"status", j.Status, "stream", chunks}), nil
}

func (x *exchange) cancelJobLocked(e *endpoint, j *job) (reply, error) {
	if j.final() {
		return reply{}, badRequest("the job is " + j.Status + ": cancel is not possible")
	}
	if e == nil {
		j.Status, j.Ends = jobCancelled, x.now
		return ok(j.record()), nil
	}
	leave, err := x.enterLocked(e)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	if w := e.worker(j.Worker); w != nil && j.Status == jobRunning {
		w.free(x.now)
	}
	e.end(j, jobCancelled, x.now)
	x.s.scheduleLocked(x.acct, e, x.now)
	return ok(j.record()), nil
}

// retryJobLocked queues a job that failed or timed out once more, under the same id.
func (x *exchange) retryJobLocked(e *endpoint, j *job) (reply, error) {
	if e == nil || j.Status != jobFailed && j.Status != jobTimedOut {
		return reply{}, badRequest("the job is " + j.Status + ": retry is not possible")
	}
	life := j.Expires.Sub(j.Queued)
	e.drop(j)
	j.requeue(x.now)
	j.Tries, j.Expires = 0, x.now.Add(life)
	e.enqueue(j)
	e.Retried++
	x.s.scheduleLocked(x.acct, e, x.now)
	return inQueue(j), nil
}

// purgeLocked removes what is still queued.
func (x *exchange) purgeLocked(e *endpoint) (reply, error) {
	removed := 0
	for _, j := range append([]*job(nil), e.Active...) {
		if j.Status == jobQueued {
			j.Status, j.Ends = jobCancelled, x.now // for calls that still wait for it
			e.drop(j)
			removed++
		}
	}
	x.s.scheduleLocked(x.acct, e, x.now)
	return ok(object{"removed", removed, "status", "completed"}), nil
}

func (x *exchange) healthLocked(e *endpoint) (reply, error) {
	counts := map[string]int{}
	for _, w := range e.Fleet {
		counts[w.Status]++
	}
	for _, j := range e.Active {
		counts[j.Status]++
	}
	return ok(object{"jobs", object{
		"completed", e.Completed, "failed", e.Failed, "inProgress", counts[jobRunning], "inQueue", counts[jobQueued], "retried", e.Retried,
	}, "workers", object{
		"idle", counts[workerIdle], "running", counts[workerRunning], "initializing", counts[workerInitializing],
		"ready", counts[workerIdle] + counts[workerRunning], "throttled", counts[workerThrottled], "unhealthy", counts[workerUnhealthy],
	}}), nil
}

// unfinishedLocked answers the jobs that are not over yet.
func (x *exchange) unfinishedLocked(e *endpoint) (reply, error) {
	return ok(object{"requests", objects(e.Active, (*job).record)}), nil
}
