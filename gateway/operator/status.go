package operator

import (
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// GatewayStatus is the state of the configuration in force. It is safe for
// concurrent use; the zero value means that nothing was loaded yet.
type GatewayStatus struct {
	mu       sync.Mutex // guards the fields below
	serving  bool
	revision string
	loaded   time.Time
	failed   time.Time
	fault    string
	restart  []string
	drains   chan struct{}
	refused  []settings.RejectedFile
}

// Report is a copy of a Status, as the admin listener shows it.
type Report struct {
	Serving  bool      `json:"serving"`
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Fault is why the newest configuration was not taken, empty when it was.
	Fault  string     `json:"fault,omitempty"`
	Failed *time.Time `json:"failed,omitempty"`
	// Restart names the settings that differ from those the process was started
	// with and require a restart.
	Restart []string `json:"restart,omitempty"`
	// Refused are the files of organisations that were not taken; the last good section of each stays.
	Refused []settings.RejectedFile `json:"refused,omitempty"`
	// Policies lists the organisations' policies, and Envoys their groups; the caller of Report adds both.
	Policies []PolicyStatus      `json:"policies,omitempty"`
	Envoys   []envoy.GroupStatus `json:"envoys,omitempty"`
}

// Why says why the newest configuration was not taken, or not as a whole; "" when it was.
func (r *Report) Why() string {
	if r.Fault != "" || len(r.Refused) == 0 {
		return r.Fault
	}
	return "files of organisations were not taken: " + r.Refused[0].Fault
}

// Serving notes that the listeners are open, or that draining has begun.
func (s *GatewayStatus) Serving(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving && !on {
		close(s.drainsLocked())
	}
	s.serving = on
}

// Drains returns a channel that is closed when draining begins.
func (s *GatewayStatus) Drains() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drainsLocked()
}

func (s *GatewayStatus) drainsLocked() chan struct{} {
	if s.drains == nil {
		s.drains = make(chan struct{})
	}
	return s.drains
}

// Loaded notes that a configuration is in force; an earlier fault is over.
// restart names the settings whose new values require a restart, refused the files of
// organisations that were not taken.
func (s *GatewayStatus) Loaded(at time.Time, revision string, restart []string, refused []settings.RejectedFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.revision, s.restart, s.refused = at, revision, restart, refused
	s.failed, s.fault = time.Time{}, ""
}

// Failed notes that a configuration was not taken, and why.
func (s *GatewayStatus) Failed(at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.fault = at, err.Error()
}

// Report returns the status now.
func (s *GatewayStatus) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Serving: s.serving, Revision: s.revision, Loaded: s.loaded, Fault: s.fault, Restart: s.restart, Refused: s.refused}
	if s.fault != "" {
		at := s.failed
		r.Failed = &at
	}
	return r
}
