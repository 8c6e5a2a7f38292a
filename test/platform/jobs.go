package platform

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"
)

// The states of a job.
const (
	jobQueued    = "IN_QUEUE"
	jobRunning   = "IN_PROGRESS"
	jobCompleted = "COMPLETED"
	jobFailed    = "FAILED"
	jobCancelled = "CANCELLED"
	jobTimedOut  = "TIMED_OUT"
)

// How long results are kept.
const (
	keepAsync = 30 * time.Minute
	keepSync  = time.Minute
)

// maxTries is how often a job is given to a worker when workers get lost.
const maxTries = 3

// job is one request to a queue.
type job struct {
	ID          string
	Input       any
	Script      jobScript
	Sync        bool
	LowPriority bool
	ExecTimeout time.Duration
	Keep        time.Duration

	Status    string
	Queued    time.Time // when it was queued last
	Expires   time.Time // by its time to live
	Started   time.Time // zero before a worker took it
	Ends      time.Time // when it will be, or was, over
	Worker    string
	Output    json.RawMessage `json:",omitempty"`
	Error     string
	Tries     int
	Delivered int     // chunks handed out by stream
	Public    bool    // a public model's generation
	Cost      float64 // USD, of a generation
	Calls     bool    // a worker runs the function that its input carries

	result *callResult        // of the function, once it is there
	stop   context.CancelFunc // ends the function's run; nil without one
}

// jobScript is what the input asks the emulated handler to do, in its member
// "emulator": everything may be left out.
//
//	delay_ms  how long the handler takes
//	output    what it returns instead of {"echo": input}
//	error     the text it raises
//	chunks    what it yields, evenly over its time
//	aggregate whether status returns the list of the chunks
//	crashes   how many workers get lost over it
type jobScript struct {
	Delay     *time.Duration    `body:"delay_ms"`
	Output    json.RawMessage   `json:",omitempty" body:"output"`
	Error     string            `body:"error"`
	Chunks    []json.RawMessage `body:"chunks"`
	Aggregate bool              `body:"aggregate"`
	Crashes   int               `body:"crashes" max:"100"`
}

func (s *jobScript) check(fields) {
	if s.Delay != nil {
		*s.Delay *= time.Millisecond
	}
}

// jobInput is what the emulator reads of a job's input.
type jobInput struct {
	Script jobScript `body:"emulator"`
}

// encoded writes a decoded value back as JSON.
func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("platform: what was decoded always encodes: " + err.Error())
	}
	return b
}

func (j *job) final() bool {
	return j.Status != jobQueued && j.Status != jobRunning
}

// startOn gives the job to a worker at an instant and settles how it will end.
func (j *job) startOn(w *worker, at time.Time, usual time.Duration) {
	j.Status, j.Started, j.Worker, j.Tries = jobRunning, at, w.ID, j.Tries+1
	j.Ends = earliest(at.Add(min(j.takes(usual), j.ExecTimeout)), j.Expires)
	w.Job, w.Status = j.ID, workerRunning
}

// takes is how long the handler takes. A function's run is over once its answer is
// there.
func (j *job) takes(usual time.Duration) time.Duration {
	switch {
	case j.result != nil:
		return 0
	case j.Calls:
		return math.MaxInt64
	case j.Script.Delay != nil:
		return *j.Script.Delay
	default:
		return usual
	}
}

// outcome is how the running job's end finds it.
type outcome int

const (
	returned outcome = iota
	ranOut           // of its execution timeout
	expired          // its time to live is over: the job is deleted
	lost             // with its worker
)

// ending is the outcome of a running job at its end.
func (j *job) ending(usual time.Duration) outcome {
	took := j.takes(usual)
	switch {
	case j.Tries <= j.Script.Crashes, j.Calls && j.stop == nil: // with the emulator, which has been started anew
		return lost
	case !j.Ends.Before(j.Expires) && j.Started.Add(took).After(j.Expires):
		return expired
	case took > j.ExecTimeout:
		return ranOut
	default:
		return returned
	}
}

// finish stores the result of a handler that returned or raised, and tells the
// state it leaves the job in.
func (j *job) finish() (status string) {
	if j.result != nil {
		return j.finishCall()
	}
	if j.Script.Error != "" {
		j.Error = j.Script.Error
		return jobFailed
	}
	switch {
	case j.Script.Output != nil:
		j.Output = j.Script.Output
	case len(j.Script.Chunks) > 0 && j.Script.Aggregate:
		j.Output = encoded(j.Script.Chunks)
	case len(j.Script.Chunks) == 0:
		j.Output = encoded(map[string]any{"echo": j.Input})
	}
	return jobCompleted
}

// requeue puts the job at the end of the queue again.
func (j *job) requeue(at time.Time) {
	j.Status, j.Queued, j.Started, j.Ends = jobQueued, at, time.Time{}, time.Time{}
	j.Worker, j.Output, j.Error, j.Delivered = "", nil, "", 0
	j.abandon()
}

// job finds a job whose result is still kept.
func (e *endpoint) job(id string, now time.Time) *job {
	if j := e.jobs[id]; j != nil && !j.forgotten(now) {
		return j
	}
	return nil
}

// enqueue adds a job.
func (e *endpoint) enqueue(j *job) {
	if e.jobs == nil {
		e.jobs = map[string]*job{}
	}
	e.jobs[j.ID] = j
	e.Active = append(e.Active, j)
}

// end closes an active job in a final state at an instant.
func (e *endpoint) end(j *job, status string, at time.Time) {
	j.Status, j.Ends = status, at
	e.leave(j)
	e.Done = append(e.Done, j)
}

// leave takes a job out of those that are active.
func (e *endpoint) leave(j *job) {
	j.abandon()
	if i := slices.Index(e.Active, j); i >= 0 {
		e.Active = slices.Delete(e.Active, i, i+1)
	}
}

// drop forgets a job.
func (e *endpoint) drop(j *job) {
	e.leave(j)
	e.Done = slices.DeleteFunc(e.Done, func(other *job) bool { return other == j })
	delete(e.jobs, j.ID)
}

// forget drops the jobs whose results are no longer kept. It looks only now and
// then: a result past its time is not found anyway.
func (e *endpoint) forget(now time.Time) {
	if len(e.Done) < 1000 && (len(e.Done) == 0 || !e.Done[0].forgotten(now)) {
		return
	}
	e.Done = slices.DeleteFunc(e.Done, func(j *job) bool {
		if j.forgotten(now) {
			delete(e.jobs, j.ID)
			return true
		}
		return false
	})
}

// forgotten reports whether the result of a final job is no longer kept.
func (j *job) forgotten(now time.Time) bool {
	return j.final() && !now.Before(j.Ends.Add(j.Keep))
}

// yielded is how many chunks the handler has put out by now.
func (j *job) yielded(now time.Time) int {
	n := len(j.Script.Chunks)
	switch {
	case j.Status == jobCompleted || n == 0:
		return n
	case j.Started.IsZero() || !j.Ends.After(j.Started):
		return 0
	}
	return int(int64(n) * int64(earliest(now, j.Ends).Sub(j.Started)) / int64(j.Ends.Sub(j.Started)))
}

// record is the job object.
func (j *job) record() object {
	o := j.brief()
	if !j.Started.IsZero() {
		o = append(o, "delayTime", j.Started.Sub(j.Queued).Milliseconds())
	}
	if j.final() && !j.Started.IsZero() {
		o = append(o, "executionTime", j.Ends.Sub(j.Started).Milliseconds())
	}
	if j.Worker != "" {
		o = append(o, "workerId", j.Worker)
	}
	if j.Output != nil {
		o = append(o, "output", j.Output)
	}
	if j.Error != "" {
		o = append(o, "error", j.Error)
	}
	return o
}

// brief is what a caller learns before the end.
func (j *job) brief() object { return object{"id", j.ID, "status", j.Status} }
