package admin

import (
	"net/http"
	"time"
)

// IdleList is what costs money and did not work at the last look; At is nil if there
// was none.
type IdleList struct {
	At        *time.Time     `json:"at"`
	Resources []IdleResource `json:"resources"`
}

// IdleResource is one of them. Without a team and a key, it is the organisation's.
type IdleResource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
	// Reason is unused, no_jobs, stopped or unmounted.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// PerMonth is what it costs in a month as it stands, USD.
	PerMonth string `json:"perMonth"`
	// Kept is until when its owner keeps it, StopAt when it will be stopped.
	Kept   *time.Time `json:"kept,omitempty"`
	StopAt *time.Time `json:"stopAt,omitempty"`
}

// Kept says until when a resource is left alone; nil ends that.
type Kept struct {
	Resource string     `json:"resource"`
	Until    *time.Time `json:"until"`
}

func (d Deps) idle(r *http.Request) (any, error) {
	return d.Spend.Idle(r.Context(), r.URL.Query().Get("org"))
}

func (d Deps) keep(r *http.Request) (any, error) {
	q := r.URL.Query()
	span, err := time.ParseDuration(q.Get("for"))
	if err != nil {
		return nil, BadRequestError{"for: want a duration such as 24h"}
	}
	return d.Spend.Keep(r.Context(), q.Get("org"), q.Get("id"), span)
}
