package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// callError is the error of a call with invalid input (400), or of a function or job that failed (500).
type callError struct {
	status int
	text   string
}

func (e *callError) Error() string { return e.text }

// errSlow is returned for a call that exceeds the time limit of its endpoint.
var errSlow = errors.New("no result in time")

// job is the platform's response about a job.
type job struct {
	ID     string          `json:"id"`
	Status string          `json:"status"`
	Output json.RawMessage `json:"output"`
	Error  any             `json:"error"`
	// Millis is the execution time of the function in milliseconds.
	Millis int64 `json:"executionTime"`
}

func (j *job) took() time.Duration { return time.Duration(j.Millis) * time.Millisecond }

func (j *job) final() bool {
	switch j.Status {
	case "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT":
		return true
	default:
		return false
	}
}

// result is the response of a worker. On a queue, it is the output of the job, and the worker moves the error to the job, which is then
// FAILED. A load-balanced endpoint responds within 60 s, with status 200 even if the function fails. The result is a pickle in base64, also
// of None, unless the call asked for the serialization format json.
type result struct {
	Success *bool           `json:"success"`
	Result  *string         `json:"result"`
	JSON    json.RawMessage `json:"json_result"`
	Error   string          `json:"error"`
	Stdout  string          `json:"stdout"`
}

// patience returns the time limit of a job, counted from the first ready worker.
func (e *Endpoint) patience() time.Duration {
	return time.Duration(cmp.Or(e.Config.ExecutionTimeout, 60000)) * time.Millisecond
}

// Job runs a function or an image as a job and waits for the result. It returns the job ID and the output as JSON.
func (s *Session) Job(ctx context.Context, p *Project, r *Route, input json.RawMessage) (id string, output json.RawMessage, err error) {
	if !r.Endpoint.Client {
		if input, err = s.payload(ctx, p, r, incoming{Job: true, Input: input}); err != nil {
			return "", nil, err
		}
	}
	var done *job
	err = s.attempt(ctx, p, r.Endpoint, func(ctx context.Context, endpoint string) (err error) {
		done, err = s.run(ctx, r.Endpoint, endpoint, input)
		return err
	})
	switch {
	case err != nil:
		return "", nil, err
	case done.Status == "TIMED_OUT", done.Status == "FAILED" && done.took() >= r.Endpoint.patience():
		return done.ID, nil, fmt.Errorf("%w: the platform ended the job; the endpoint's execution_timeout_ms is %s",
			errSlow, r.Endpoint.patience())
	case done.Status != "COMPLETED":
		text, _ := done.Error.(string)
		return done.ID, nil, &callError{http.StatusInternalServerError, cmp.Or(text, "the job is "+done.Status)}
	case r.Endpoint.Client:
		return done.ID, done.Output, nil
	}
	output, err = s.decode(ctx, r.Endpoint, done.Output)
	return done.ID, output, err
}

// Balanced calls a function of a load-balanced endpoint and returns the result as JSON.
func (s *Session) Balanced(ctx context.Context, p *Project, r *Route, in incoming) (json.RawMessage, error) {
	payload, err := s.payload(ctx, p, r, in)
	if err != nil {
		return nil, err
	}
	a, err := s.Forward(ctx, p, r.Endpoint, http.MethodPost, "/execute", nil, payload)
	switch {
	case err != nil:
		return nil, err
	case a.status >= http.StatusBadRequest:
		return nil, refusalOf(a)
	}
	return s.decode(ctx, r.Endpoint, a.body)
}

// Forward sends a request to a load-balanced endpoint and returns the response. While no workers are available, Forward repeats the
// request.
func (s *Session) Forward(
	ctx context.Context, p *Project, e *Endpoint, method, path string, header http.Header, body []byte,
) (a *answer, err error) {
	err = s.attempt(ctx, p, e, func(ctx context.Context, endpoint string) (err error) {
		for {
			a, err = s.gateway.send(ctx, method, "/lb/"+url.PathEscape(endpoint)+path, header, body)
			switch {
			case err != nil:
				return err
			case a.status == http.StatusNotFound && bytes.Contains(a.body, []byte(`"decision"`)):
				return refusalOf(a) // a refusal of the gateway: the endpoint was deleted
			case a.status < http.StatusInternalServerError || !bytes.Contains(a.body, []byte("no workers available")):
				return nil
			}
		}
	})
	return a, err
}

// incoming is a call as received: the input of a job, or the body, query and path parameters of a route.
type incoming struct {
	Job   bool              `json:"job"`
	Input json.RawMessage   `json:"input,omitempty"`
	Body  string            `json:"body"`
	Query url.Values        `json:"query"`
	Path  map[string]string `json:"path"`
}

// payload returns the request that makes a worker run a function. It checks the arguments against the function's parameters.
//
// The request has the format of version 1.21.0 of the platform's toolkit. A queue receives the request as the input of a job, and a load-balanced
// endpoint as the body of POST /execute. The source begins at def or class, without decorators, after the statements that it uses. Each
// argument is a pickle in base64: args holds positional-only parameters, and kwargs all others. Caller and worker must have the same version
// of Python. The toolkit limits a pickle to 10 MB, and a function with its modules to 8 MiB, and sends no modules with a class.
func (s *Session) payload(ctx context.Context, p *Project, r *Route, in incoming) (json.RawMessage, error) {
	f, c := r.Function, &r.Endpoint.Config
	given, err := json.Marshal(struct {
		incoming
		Name     string  `json:"name"`
		Params   []Param `json:"params"`
		Variadic bool    `json:"variadic"`
	}{in, f.Name, f.Params, f.Variadic})
	if err != nil {
		return nil, &callError{http.StatusBadRequest, "input: " + err.Error()}
	}
	raw, err := s.wire(ctx, "encode", given)
	if err != nil {
		return nil, err
	}
	var encoded struct {
		Fault  string
		Args   []string
		Kwargs map[string]string
	}
	if err := json.Unmarshal(raw, &encoded); err != nil || encoded.Fault != "" {
		return nil, errors.Join(err, &callError{http.StatusBadRequest, encoded.Fault})
	}
	modules := map[string]string{}
	for name, path := range f.Modules {
		modules[name] = p.Modules[path]
	}
	request := map[string]any{
		"args": encoded.Args, "kwargs": encoded.Kwargs, "modules": modules,
		"dependencies": append([]string{}, c.Dependencies...), "system_dependencies": append([]string{}, c.SystemDependencies...),
		"accelerate_downloads": c.Accelerate, "serialization_format": "cloudpickle", "execution_type": "function",
	}
	if f.Class == "" {
		request["function_name"], request["function_code"] = f.Name, f.Source
	} else {
		request["execution_type"], request["class_name"], request["class_code"], request["method_name"] = "class", f.Class, f.Source, f.Name
		request["constructor_args"], request["constructor_kwargs"] = []string{}, map[string]string{}
		request["instance_id"], request["create_new_instance"] = f.Class+"_"+r.Endpoint.digest(f.Source)[:8], false
	}
	raw, err = json.Marshal(request)
	if len(raw) > maxPayload {
		return nil, &refusalError{
			Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("call exceeds %d MiB, including the source of the function", maxPayload>>20),
		}
	}
	return raw, err
}

// wire encodes or decodes a value with the embedded Python program.
func (s *Session) wire(ctx context.Context, how string, given json.RawMessage) (json.RawMessage, error) {
	if s.python.path == "" {
		return nil, errors.New("python3 not found in PATH: only image endpoints can be called")
	}
	select {
	case s.child <- struct{}{}:
		defer func() { <-s.child }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return s.python.run(ctx, wirePatience, given, wireProgram, how)
}

// decode converts the response of a worker to JSON.
func (s *Session) decode(ctx context.Context, e *Endpoint, output json.RawMessage) (json.RawMessage, error) {
	var r result
	if err := json.Unmarshal(output, &r); err != nil || r.Success == nil {
		return nil, fmt.Errorf("worker image cannot run functions: unexpected response %s", shortened(string(output)))
	}
	for line := range strings.Lines(r.Stdout) {
		s.say("%s%s | %s", livePrefix, e.name(), printable(strings.TrimRight(line, "\r\n")))
	}
	switch {
	case !*r.Success:
		return nil, &callError{http.StatusInternalServerError, cmp.Or(r.Error, "the function failed")}
	case r.Result != nil:
		pickled, err := json.Marshal(*r.Result)
		if err != nil {
			return nil, err
		}
		value, err := s.wire(ctx, "decode", pickled)
		if err != nil {
			return nil, fmt.Errorf("cannot decode the result: %w", err)
		}
		return value, nil
	case len(r.JSON) > 0:
		return r.JSON, nil
	default:
		return json.RawMessage("null"), nil
	}
}

// printable removes control characters from a line of a worker.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, line)
}

// attempt calls call with the ID of the endpoint. If the endpoint was deleted outside of this session, attempt creates the endpoint again,
// once.
func (s *Session) attempt(ctx context.Context, p *Project, e *Endpoint, call func(ctx context.Context, endpoint string) error) error {
	for again := false; ; again = true {
		id, err := s.Endpoint(ctx, e, p.Python)
		if err != nil {
			return err
		}
		err = s.timed(ctx, e, id, call)
		if status(err) != http.StatusNotFound || errors.Is(err, errSlow) || again || e.Config.ID != "" {
			return err
		}
		s.forget(e.name(), id)
	}
}

// timed limits the time of a call. Until a worker is ready, the limit for cold starts applies, and timed prints the state of the workers.
// Afterwards, the limit of the endpoint applies.
func (s *Session) timed(ctx context.Context, e *Endpoint, id string, call func(ctx context.Context, endpoint string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ended:
			return
		case <-time.After(quiet):
		}
		if s.ready(ctx, e, id) != nil {
			cancel(fmt.Errorf("%w: no worker within %s", errSlow, s.set.Cold))
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
		case <-time.After(e.patience()):
			cancel(fmt.Errorf("%w: %s since the first worker was ready; increase execution_timeout_ms of the endpoint", errSlow, e.patience()))
		}
	})
	err := call(ctx, id)
	close(ended)
	cancel(nil)
	watch.Wait()
	return err
}

// quiet is the time after which a waiting call first queries the state of the workers. pace is the interval of further queries.
const (
	quiet = 2 * time.Second
	pace  = 5 * time.Second
)

// ready waits until the endpoint has a ready worker. It prints the state of the workers while it waits.
func (s *Session) ready(ctx context.Context, e *Endpoint, id string) error {
	ctx, cancel := context.WithTimeout(ctx, s.set.Cold)
	defer cancel()
	var waited time.Duration
	for {
		var found struct {
			Summary struct{ Running, Idle, Initializing, Throttled, Unhealthy int }
		}
		err := s.gateway.call(ctx, http.MethodGet, "/v2/serverless/"+url.PathEscape(id)+"/workers", nil, nil, &found)
		w := found.Summary
		switch {
		case err == nil && w.Running+w.Idle > 0:
			return nil
		case err == nil:
			s.say("%s%s: waiting for a worker for %s (initializing %d, without room %d, unhealthy %d)",
				livePrefix, e.name(), quiet+waited, w.Initializing, w.Throttled, w.Unhealthy)
		case ctx.Err() == nil:
			s.say("%s%s: waiting for a worker; %v", livePrefix, e.name(), err)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			return nil // the call has ended
		case <-time.After(pace):
			waited += pace
		}
	}
}

// run starts a job and waits until it ends. If ctx ends first, run cancels the job if the job ID is known; otherwise the platform ends the
// job at its time limit.
func (s *Session) run(ctx context.Context, e *Endpoint, id string, input json.RawMessage) (*job, error) {
	patience, base := e.patience(), "/v2/"+url.PathEscape(id)
	wait := min(max(patience, time.Second)+pace, 5*time.Minute) // the platform may end the job later than its limit
	body := map[string]any{"input": input, "policy": map[string]any{
		"executionTimeout": max(patience, 5*time.Second).Milliseconds(),
		"ttl":              max(patience+s.set.Cold, 10*time.Second).Milliseconds(),
	}}
	var j job
	err := s.gateway.call(ctx, http.MethodPost, fmt.Sprintf("%s/runsync?wait=%d", base, wait.Milliseconds()), nil, body, &j)
	for err == nil && !j.final() {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(pace):
			err = s.gateway.call(ctx, http.MethodGet, base+"/status/"+url.PathEscape(j.ID), nil, nil, &j)
			if status(err) == http.StatusNotFound {
				return &j, fmt.Errorf("%w: job %s was not found at the platform; it has probably expired", errSlow, j.ID)
			}
		}
	}
	if err != nil && j.ID != "" && !j.final() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
		defer cancel()
		refused := s.gateway.call(ctx, http.MethodPost, base+"/cancel/"+url.PathEscape(j.ID), nil, nil, nil)
		if status(refused) != http.StatusBadRequest { // 400 means that the job has already ended
			err = errors.Join(err, refused)
		}
	}
	return &j, err
}
