package operator

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Instance is a running gateway.
type Instance struct {
	Instance string `json:"instance"`
	Version  string `json:"version"`
	// Revision names the configuration in force, which was loaded at Loaded.
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Fault is why the newest configuration was not taken, empty when it was.
	Fault string `json:"fault,omitempty"`
	// Restart names the settings whose new values require a restart.
	Restart []string `json:"restart,omitempty"`
	// Undelivered describes the records of decisions and changes that a receiver has not taken.
	Undelivered []string `json:"undelivered,omitempty"`
	// Unserved lists the operations of the platform's description that the gateway does not know, and refuses.
	Unserved []string `json:"unserved,omitempty"`
	// Since is when the process began, and Envoys the number that are connected to it.
	Since  time.Time `json:"since"`
	Envoys int       `json:"envoys"`
	// At is when the gateway said so.
	At time.Time `json:"at"`
}

// List is a list of gateways, this one first.
type List struct {
	Gateways []Instance `json:"gateways"`
	// Incomplete is why there may be others.
	Incomplete string `json:"incomplete,omitempty"`
}

// Endpoints are the questions of operators about gateways. Those of nil can be read, and not be asked.
func (f *Fleet) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{Pattern: "GET /admin/status", Summary: "The configuration in force", Role: adminapi.Viewer, Handler: adminapi.HandlerFor(f.status)},
		{
			Pattern: "GET /admin/gateways", Summary: "The gateways that share a store", Role: adminapi.Viewer, Handler: adminapi.HandlerFor(f.gateways),
			Commands: []adminapi.Command{{Use: "gateways", Short: "List the gateways that share a store, with version, revision, age and Envoys", Example: "tollgate gateways"}},
		},
	}
}

func (f *Fleet) status(context.Context, adminapi.Principal, adminapi.NoParams) (*Report, error) {
	report := f.Status.Report()
	report.Policies, report.Envoys = f.Policies(), f.Groups()
	return &report, nil
}

func (f *Fleet) gateways(ctx context.Context, _ adminapi.Principal, _ adminapi.NoParams) (*List, error) {
	list, err := f.Gateways(ctx)
	out := &List{Gateways: list}
	if err != nil {
		out.Incomplete = "the shared store does not answer: this is the gateway that was asked"
	}
	return out, nil
}
