package admin

import "net/http"

// probed is the answer of a probe.
type probed struct {
	Status       string       `json:"status"`
	Revision     string       `json:"revision,omitempty"`
	Dependencies []Dependency `json:"dependencies,omitempty"`
}

// Readiness says whether a gateway takes requests, and why not.
type Readiness struct {
	Ready            bool
	Status, Revision string
	Dependencies     []Dependency
}

// Effects lists what does not work because of a dependency.
func (r *Readiness) Effects() (effects []string) {
	for _, d := range r.Dependencies {
		if d.Effect != "" {
			effects = append(effects, d.Effect)
		}
	}
	return effects
}

// Dependency is the state of something that a gateway depends on. Anyone may read it: it names no
// organisation and no address.
type Dependency struct {
	Name  string          `json:"name"`
	State DependencyState `json:"state"`
	// Effect says what does not work; empty if everything does.
	Effect string `json:"effect,omitempty"`
}

// DependencyState is the state of a dependency.
type DependencyState string

// The states of a dependency.
const (
	DependencyUp       DependencyState = "up"
	DependencyDegraded DependencyState = "degraded" // some organisations or calls are concerned
	DependencyUnfit    DependencyState = "unfit"    // it answers, and cannot be relied on
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
