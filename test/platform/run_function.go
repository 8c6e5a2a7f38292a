package platform

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// executePath is where load-balanced workers of the toolkit take functions.
const executePath = "/execute"

// startLocked gives a job to a worker, which begins with it.
func (s *Server) startLocked(a *account, e *endpoint, j *job, w *worker, at time.Time) {
	j.Calls = j.Calls && s.functions != nil
	j.startOn(w, at, s.timing.Job)
	if !j.Calls {
		return
	}
	ctx, cancel := context.WithCancel(s.life)
	j.stop = cancel
	input, env, limit := j.Input, w.Env, j.ExecTimeout
	if speed := s.clock.Speed(); speed > 0 {
		limit = time.Duration(float64(limit) / speed)
	}
	s.functions.running.Go(func() {
		timed, stop := context.WithTimeoutCause(ctx, limit, errors.New("the function ran longer than the job's execution timeout"))
		defer stop()
		got := s.functions.run(timed, input, env)
		s.mu.Lock()
		defer s.release()
		now := s.clock.Now()
		s.advanceLocked(a, now)
		if ctx.Err() != nil {
			return // the job is over, or not this worker's any more
		}
		j.result, j.Ends = &got, now
		s.stepLocked(a, e, now)
	})
}

// abandon ends the run of the job's function: nobody will read its answer.
func (j *job) abandon() {
	if j.stop != nil {
		j.stop()
	}
	j.stop, j.result = nil, nil
}

// finishCall stores the answer to the function's call. An error is the job's, and no
// member of its output.
func (j *job) finishCall() (status string) {
	got := *j.result
	j.Error, got.Error = got.Error, ""
	j.Output = encoded(got)
	if !got.Success {
		return jobFailed
	}
	return jobCompleted
}

// calls reports whether an input carries a function that is to be run. A page of the
// web can make a browser call any name that leads to this machine, but not by the names
// that always do: by others nothing is run.
func (x *exchange) calls(input any) (bool, error) {
	if x.s.functions == nil || !hasFunction(input) {
		return false, nil
	}
	host := x.r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true, nil
	}
	return false, refuse(http.StatusForbidden, "functions are run for calls to localhost only")
}

// executes returns the input of a request that carries a function to be run.
func (x *exchange) executes() (input any, calls bool, err error) {
	if x.r.Method != http.MethodPost || x.r.URL.Path != executePath {
		return nil, false, nil
	}
	if input, err = x.decode(); err != nil {
		return nil, false, nil //nolint:nilerr // a body that is not JSON carries no function
	}
	calls, err = x.calls(input)
	return input, calls, err
}

// executeLocked runs the function on a load-balanced worker. It gives the lock up
// meanwhile. A function that fails is no error of HTTP.
func (x *exchange) executeLocked(input any, e *endpoint, w *worker) reply {
	ctx, stop := x.untilClosed()
	defer stop()
	env := w.Env // is never changed
	x.unlock()
	got := x.s.functions.run(ctx, input, env)
	x.lock()
	w.IdleSince = x.now
	rep := ok(encoded(got))
	rep.header = http.Header{workerHeader: {w.ID}}
	return rep
}
