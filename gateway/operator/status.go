package operator

import (
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// GatewayStatus is the state of the configuration in force. It is safe for concurrent use. The zero value means that no
// configuration has been loaded.
type GatewayStatus struct {
	mu     sync.Mutex // guards the fields below
	report Report
	drains chan struct{}
}

// Report is a snapshot of a GatewayStatus for the admin listener.
type Report struct {
	Serving  bool      `json:"serving"`
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Fault is the reason why the newest configuration was rejected, or empty.
	Fault  string     `json:"fault,omitempty"`
	Failed *time.Time `json:"failed,omitempty"`
	// Restart lists the settings that differ from those at startup and require a restart.
	Restart []string `json:"restart,omitempty"`
	// Refused lists the rejected files of organisations; the last valid configuration of each stays in force.
	Refused []settings.RejectedFile `json:"refused,omitempty"`
	// Policies lists the status of the organisations' policies, and Envoys the status of the Envoy groups. [GatewayStatus.Report] leaves both
	// nil; the handler of the admin listener sets them.
	Policies []PolicyStatus      `json:"policies,omitempty"`
	Envoys   []envoy.GroupStatus `json:"envoys,omitempty"`
}

// Problem explains why the newest configuration was rejected completely or in part, or returns "".
func (r *Report) Problem() string {
	if r.Fault != "" || len(r.Refused) == 0 {
		return r.Fault
	}
	return "organisation files rejected: " + r.Refused[0].Fault
}

// SetServing records that the listeners are open or, if on is false, that draining has begun.
func (s *GatewayStatus) SetServing(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Serving && !on {
		close(s.drainsLocked())
	}
	s.report.Serving = on
}

// Draining returns a channel that is closed when draining begins.
func (s *GatewayStatus) Draining() <-chan struct{} {
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

// SetLoaded records that a configuration is in force and clears an earlier fault. restart lists the settings that require a restart.
// refused lists the rejected files of organisations; these organisations keep their previous configuration.
func (s *GatewayStatus) SetLoaded(at time.Time, revision string, restart []string, refused []settings.RejectedFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = Report{Serving: s.report.Serving, Revision: revision, Loaded: at, Restart: restart, Refused: refused}
}

// SetFailed records that a whole configuration was rejected; the previous one stays in force.
func (s *GatewayStatus) SetFailed(at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Failed, s.report.Fault = &at, err.Error()
}

// Report returns a copy of the current status without Policies and Envoys.
func (s *GatewayStatus) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}
