package dev

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/reference"
)

// Settings configures a [Session].
type Settings struct {
	// User is the value of the label dev on the session's endpoints. Without User, endpoints have no such label.
	User string
	// Images holds worker images by kind (gpu, cpu, lb, lb-cpu). They take precedence over the toolkit's images.
	Images map[string]string
	// MaxUSD limits the cost of the session. 0 means no limit.
	MaxUSD float64
	// Emulated is true if the platform is an emulator that ends with the session and loses all endpoints.
	Emulated bool
	// Cold limits how long a call waits for the first ready worker.
	Cold time.Duration
	// Now returns the current time. Out is the writer for messages to the developer.
	Now func() time.Time
	Out io.Writer
}

// Session calls the functions of a project and creates their endpoints on first use. Concurrent calls to the same endpoint create it only
// once. A Session is safe for concurrent use.
type Session struct {
	gateway *Gateway
	state   *State
	python  Python
	set     Settings
	child   chan struct{} // limits concurrent child processes
	kick    chan struct{} // signals a change of the rented endpoints
	// unlabelled is true if the organisation does not allow the label dev for this key.
	unlabelled atomic.Bool
	served     sync.Map // the keys are values of Endpoint.balanced: the gateway forwards calls to such endpoints

	mu      sync.Mutex
	flights map[string]*flight
	rented  map[string]rental
	ended   float64 // maximum cost of ended rentals in USD
	over    bool    // the limit was reached
}

// flight is the creation of an endpoint, in progress or done.
type flight struct {
	digest string
	done   chan struct{}
	id     string
	err    error
}

// NewSession returns a session that has not created any endpoints.
func NewSession(g *Gateway, s *State, p Python, set Settings) *Session {
	return &Session{
		gateway: g, state: s, python: p, set: set, child: make(chan struct{}, 4), kick: make(chan struct{}, 1),
		flights: map[string]*flight{}, rented: map[string]rental{},
	}
}

// say prints a line for the developer.
func (s *Session) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.set.Out, format+"\n", args...) // a failed write of a log line cannot be reported
}

// checkRuns returns an error that names the missing setting if the gateway does not forward calls to the endpoint. It remembers a success.
func (s *Session) checkRuns(ctx context.Context, e *Endpoint) error {
	if _, known := s.served.Load(e.balanced()); known {
		return nil
	}
	var served struct{ Paths map[string]json.RawMessage }
	if err := s.gateway.call(ctx, http.MethodGet, reference.RunPath, nil, nil, &served); err != nil && status(err) != http.StatusNotFound {
		return err
	}
	what, setting, path := "jobs", "platform.run_url", "/runsync"
	if e.balanced() {
		what, setting, path = "calls of load-balanced endpoints", "platform.lb_url", "/lb/"
	}
	for p := range served.Paths {
		if strings.HasSuffix(p, path) || strings.HasPrefix(p, path) {
			s.served.Store(e.balanced(), true)
			return nil
		}
	}
	return fmt.Errorf("gateway %s does not serve %s: set %s in the configuration of the gateway", s.gateway.URL, what, setting)
}

// Endpoint returns the ID of an endpoint on the platform that has the configuration e. If the session has no such endpoint, Endpoint
// creates one, changes an existing endpoint, or takes over an existing endpoint. If ctx ends, Endpoint returns context.Cause(ctx). The
// creation nevertheless continues, because other callers may wait for the same endpoint.
func (s *Session) Endpoint(ctx context.Context, e *Endpoint, python string) (string, error) {
	if err := s.checkRuns(ctx, e); err != nil {
		return "", err
	}
	if e.Config.ID != "" {
		return e.Config.ID, nil
	}
	image := e.image(s.set.Images, python)
	digest := e.digest(image)
	for {
		f, err := s.flight(ctx, e, image, digest)
		if err != nil {
			return "", err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if f.err != nil || f.digest == digest {
			return f.id, f.err
		}
		s.forget(e.name(), f.id) // the endpoint has another configuration
	}
}

// provisionPatience limits the calls that create an endpoint.
const provisionPatience = 3 * time.Minute

// flight returns the current or last creation of an endpoint, or starts one.
func (s *Session) flight(ctx context.Context, e *Endpoint, image, digest string) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, s.overError()
	}
	if f := s.flights[e.name()]; f != nil {
		return f, nil
	}
	f := &flight{digest: digest, done: make(chan struct{})}
	s.flights[e.name()] = f
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), provisionPatience)
		defer cancel()
		f.id, f.err = s.ensure(ctx, e, image, digest)
		close(f.done)
		if f.err != nil {
			s.say("%s%s: %v", livePrefix, e.name(), f.err)
			s.forget(e.name(), f.id) // the next call retries
		}
	}()
	return f, nil
}

// forget discards the finished creation of an endpoint if it returned the given ID. The next call then checks the endpoint again.
func (s *Session) forget(name, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[name]; f != nil {
		select {
		case <-f.done:
			if f.id == id {
				delete(s.flights, name)
			}
		default:
		}
	}
}

// ensure creates or changes the endpoint so that it matches e.
func (s *Session) ensure(ctx context.Context, e *Endpoint, image, digest string) (string, error) {
	var list prices
	path := "/v2/catalog/gpus"
	if len(e.Config.CPU) > 0 {
		path = "/v2/catalog/cpus"
	}
	if err := s.gateway.call(ctx, http.MethodGet, path, nil, nil, &list); err != nil {
		return "", fmt.Errorf("price list: %w", err)
	}
	body, err := e.body(image, list)
	if err != nil {
		return "", e.fault("%v", err)
	}
	entry, there, err := s.standing(ctx, e.name())
	switch {
	case err != nil:
		return "", err
	case there && entry.Kind != e.kind():
		s.say("%s%s has a different kind now: deleting and recreating the endpoint", livePrefix, e.name())
		if err := s.Remove(ctx, e.name()); err != nil {
			return "", err
		}
	case there && entry.Digest == digest && (entry.Hourly > 0 || s.set.MaxUSD == 0): // a limit requires a price
		s.say("%s%s already exists with this configuration", livePrefix, e.name())
		s.rent(e.name(), entry)
		return entry.ID, nil
	case there:
		delete(body, "type")
		entry.Digest = digest
		return entry.ID, s.update(ctx, e, entry, body)
	}
	return s.create(ctx, e, &Entry{Digest: digest, Kind: e.kind()}, body)
}

// standing returns the entry of an endpoint, and whether the endpoint exists. If a request to create the endpoint was interrupted, standing
// sends the request again, and the gateway returns the endpoint of the first attempt.
func (s *Session) standing(ctx context.Context, name string) (*Entry, bool, error) {
	all, err := s.state.Read()
	if err != nil {
		return nil, false, err
	}
	entry := all.in(s.gateway.URL)[name]
	if entry == nil || entry.Key == "" {
		return nil, false, nil
	}
	if entry.ID == "" {
		s.say("%s%s: an earlier request to create the endpoint was interrupted; checking its outcome", livePrefix, name)
		if _, err := s.submit(ctx, name, entry); err != nil {
			return nil, false, err
		}
	}
	there, err := s.gateway.there(ctx, name, entry.ID)
	return entry, there, err
}

// create creates an endpoint. It stores the request before sending it.
func (s *Session) create(ctx context.Context, e *Endpoint, entry *Entry, body map[string]any) (string, error) {
	q, err := s.quote(ctx, e, http.MethodPost, "/v2/serverless", body)
	if err != nil {
		return "", err
	}
	if entry.Body, err = json.Marshal(body); err != nil {
		return "", err
	}
	entry.Labels, entry.Hourly, entry.Made, entry.Emulated = q.labels, q.hourly, s.set.Now().UTC(), s.set.Emulated
	err = s.state.Change(func(all entries) {
		if old := all.in(s.gateway.URL)[e.name()]; old != nil {
			entry.Generation = old.Generation + 1
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d", s.state.project, s.gateway.URL, e.name(),
			entry.Body, entry.Generation))
		entry.Key = "dev-" + hex.EncodeToString(sum[:])
		all.in(s.gateway.URL)[e.name()] = entry
	})
	if err != nil {
		return "", err
	}
	replayed, err := s.submit(ctx, e.name(), entry)
	if err != nil {
		return "", err
	}
	if replayed { // an earlier session created the endpoint, and its state was lost; the endpoint may no longer exist
		there, err := s.gateway.there(ctx, e.name(), entry.ID)
		if err != nil {
			return "", err
		}
		if !there {
			return s.create(ctx, e, &Entry{Digest: entry.Digest, Kind: entry.Kind}, body)
		}
	}
	s.say("%s%s created: %s", livePrefix, e.name(), entry.ID)
	s.rent(e.name(), entry)
	return entry.ID, nil
}

// submit sends the request that creates the endpoint of an entry, and stores the ID. replayed is true if the gateway returned an earlier
// response. If the gateway refuses the request definitively, submit removes the entry.
func (s *Session) submit(ctx context.Context, name string, entry *Entry) (replayed bool, err error) {
	header := http.Header{"Idempotency-Key": {entry.Key}}
	if entry.Labels != "" {
		header.Set(labelsHeader, entry.Labels)
	}
	a, err := s.gateway.send(ctx, http.MethodPost, "/v2/serverless", header, entry.Body)
	if err != nil {
		return false, err
	}
	switch a.status {
	case http.StatusOK, http.StatusCreated:
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
		return false, errors.Join(refusalOf(a), s.state.end(s.gateway.URL, name))
	default:
		return false, refusalOf(a)
	}
	var made record
	if err := json.Unmarshal(a.body, &made); err != nil || made.ID == "" {
		return false, fmt.Errorf("gateway %s: response to a request that creates an endpoint does not contain an id", s.gateway.URL)
	}
	entry.ID, entry.Body = made.ID, nil
	return a.header.Get("Idempotent-Replayed") == "true", s.state.put(s.gateway.URL, name, entry)
}

// update changes the endpoint.
func (s *Session) update(ctx context.Context, e *Endpoint, entry *Entry, body map[string]any) error {
	path := "/v2/serverless/" + entry.ID
	q, err := s.quote(ctx, e, http.MethodPatch, path, body)
	if err != nil {
		return err
	}
	if err := s.gateway.call(ctx, http.MethodPatch, path, nil, body, nil); err != nil {
		return err
	}
	entry.Hourly = q.hourly
	s.say("%s%s changed: %s", livePrefix, e.name(), entry.ID)
	s.rent(e.name(), entry)
	return s.state.put(s.gateway.URL, e.name(), entry)
}

// Remove deletes an endpoint of the project and its entry.
func (s *Session) Remove(ctx context.Context, name string) error {
	entry, there, err := s.standing(ctx, name)
	if err == nil && entry == nil {
		err = errors.New("endpoint not found for this directory at this gateway")
	}
	if err == nil && there {
		err = s.gateway.call(ctx, http.MethodDelete, "/v2/serverless/"+url.PathEscape(entry.ID), nil, nil, nil)
		if status(err) == http.StatusNotFound { // deleted meanwhile
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s%s: %w", livePrefix, name, err)
	}
	s.forget(name, entry.ID)
	s.giveUp(name)
	return s.state.end(s.gateway.URL, name)
}
