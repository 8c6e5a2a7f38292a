package admin

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/xds"
)

// Status is the state of the configuration in force. It is safe for
// concurrent use; the zero value means that nothing was loaded yet.
type Status struct {
	mu       sync.Mutex // guards the fields below
	serving  bool
	revision string
	loaded   time.Time
	failed   time.Time
	fault    string
	restart  []string
	drains   chan struct{}
	refused  []settings.FileFault
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
	Refused []settings.FileFault `json:"refused,omitempty"`
	// Policies lists the organisations' policies; the caller of Report adds them.
	Policies []PolicyStatus `json:"policies,omitempty"`
	// Envoys lists their groups; the caller of Report adds them.
	Envoys []xds.GroupStatus `json:"envoys,omitempty"`
}

// Why says why the newest configuration was not taken, or not as a whole; "" when it was.
func (r *Report) Why() string {
	if r.Fault != "" || len(r.Refused) == 0 {
		return r.Fault
	}
	return "files of organisations were not taken: " + r.Refused[0].Fault
}

// InForce is the configuration in force, or a section of it.
type InForce struct {
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Org is the organisation whose section it is, "" for the whole.
	Org string `json:"org,omitempty"`
	// YAML has no secrets.
	YAML string `json:"yaml"`
}

func (d Deps) configRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/config", Summary: "The configuration in force as YAML, without secrets", Role: row.Admin, About: row.OfOrg, Ask: row.Do(d.inForce),
			Commands: []row.Command{{
				Use: "config show", Short: "Show the configuration in force as YAML, without secrets", Example: "tollgate config show\ntollgate config show --org acme",
				Long: `Shows the configuration that the gateway works by, with its defaults, its revision
and when it was loaded. Secrets show where they come from; the digests of keys and
tokens are masked. With --org it is the section of the organisation.`,
			}},
		},
	}
}

func (d Deps) inForce(_ context.Context, _ row.Scope, p anyOrg) (*InForce, error) {
	return d.Config(string(p.Org))
}

// PolicyStatus is how an organisation's policies are doing.
type PolicyStatus struct {
	Org string `json:"org"`
	// Revision names the policies in force; empty while a bundle is awaited.
	Revision string `json:"revision"`
	// Bundle is the revision its bundle gives itself, Fetched when it was last
	// seen to be current.
	Bundle  string `json:"bundle,omitempty"`
	Fetched string `json:"fetched,omitempty"`
	// Fault is why the latest bundle was not taken; the last good one decides.
	Fault string `json:"fault,omitempty"`
	// Unlisted are the parameters that name things missing from the platform's catalog.
	Unlisted []string `json:"unlisted,omitempty"`
}

// Serving notes that the listeners are open, or that draining has begun.
func (s *Status) Serving(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving && !on {
		close(s.drainsLocked())
	}
	s.serving = on
}

// Drains returns a channel that is closed when draining begins.
func (s *Status) Drains() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drainsLocked()
}

func (s *Status) drainsLocked() chan struct{} {
	if s.drains == nil {
		s.drains = make(chan struct{})
	}
	return s.drains
}

// Loaded notes that a configuration is in force; an earlier fault is over.
// restart names the settings whose new values require a restart, refused the files of
// organisations that were not taken.
func (s *Status) Loaded(at time.Time, revision string, restart []string, refused []settings.FileFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.revision, s.restart, s.refused = at, revision, restart, refused
	s.failed, s.fault = time.Time{}, ""
}

// Failed notes that a configuration was not taken, and why.
func (s *Status) Failed(at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.fault = at, err.Error()
}

// Report returns the status now.
func (s *Status) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Serving: s.serving, Revision: s.revision, Loaded: s.loaded, Fault: s.fault, Restart: s.restart, Refused: s.refused}
	if s.fault != "" {
		at := s.failed
		r.Failed = &at
	}
	return r
}
