package admin

import "net/http"

// probed is the response of a probe.
type probed struct {
	Status       string       `json:"status"`
	Revision     string       `json:"revision,omitempty"`
	Dependencies []Dependency `json:"dependencies,omitempty"`
}

// Readiness reports whether a gateway accepts requests and, if not, the reasons.
type Readiness struct {
	Ready            bool
	Status, Revision string
	Dependencies     []Dependency
}

// Effects returns what is unavailable because of dependencies.
func (r *Readiness) Effects() (effects []string) {
	for _, d := range r.Dependencies {
		if d.Effect != "" {
			effects = append(effects, d.Effect)
		}
	}
	return effects
}

// Dependency is the state of a service that the gateway depends on. The state is public and therefore contains neither
// organisations nor addresses.
type Dependency struct {
	Name  string          `json:"name"`
	State DependencyState `json:"state"`
	// Effect describes what is unavailable, or is empty.
	Effect string `json:"effect,omitempty"`
}

// DependencyState is the state of a dependency.
type DependencyState string

// States of a dependency.
const (
	DependencyUp       DependencyState = "up"
	DependencyDegraded DependencyState = "degraded" // some organisations or calls are affected
	DependencyUnfit    DependencyState = "unfit"    // it responds but is not reliable
	DependencyDown     DependencyState = "down"
)

func live(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, probed{Status: "live"}) }

func (d Deps) ready(w http.ResponseWriter, _ *http.Request) {
	r, status := d.Ready(), http.StatusOK
	if !r.Ready {
		status = http.StatusServiceUnavailable
	}
	write(w, status, probed{r.Status, r.Revision, r.Dependencies})
}
