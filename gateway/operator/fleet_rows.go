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
	// Revision identifies the configuration in force. Loaded is the time when it was loaded.
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Fault is the reason why the newest configuration was rejected, or empty.
	Fault string `json:"fault,omitempty"`
	// Restart lists the settings whose new values require a restart.
	Restart []string `json:"restart,omitempty"`
	// Undelivered describes records of decisions and changes that a receiver has not accepted, and logs whose files cannot be rotated.
	Undelivered []string `json:"undelivered,omitempty"`
	// Unserved lists operations in the platform's description that the gateway does not know and refuses.
	Unserved []string `json:"unserved,omitempty"`
	// Since is the start time of the process. Envoys is the number of connected Envoys.
	Since  time.Time `json:"since"`
	Envoys int       `json:"envoys"`
	// At is the time of the report.
	At time.Time `json:"at"`
}

// List is the response with the running gateways, the responding gateway first.
type List struct {
	Gateways []Instance `json:"gateways"`
	// Incomplete is the reason why other gateways may be missing, or empty.
	Incomplete string `json:"incomplete,omitempty"`
}

// Endpoints returns the endpoints for gateways. A nil receiver returns endpoints that can be listed but not called.
func (f *Fleet) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/status", Summary: "Status of the configuration in force", Role: adminapi.Viewer,
			Handler: adminapi.HandlerFor(f.status),
		},
		{
			Pattern: "GET /admin/gateways", Summary: "Gateways that share a store", Role: adminapi.Viewer, Handler: adminapi.HandlerFor(f.gateways),
			Commands: []adminapi.Command{{
				Use: "gateways", Heading: "Operate", Short: "List the gateways that share a store, with version, revision, age and Envoys",
				Example: "tollgate gateways",
			}},
		},
	}
}

func (f *Fleet) status(context.Context, adminapi.Principal, adminapi.NoParams) (*Report, error) {
	report := f.Status.Report()
	report.Policies, report.Envoys = f.policies(), f.Envoys.Groups()
	return &report, nil
}

func (f *Fleet) gateways(ctx context.Context, _ adminapi.Principal, _ adminapi.NoParams) (*List, error) {
	list, err := f.Gateways(ctx)
	out := &List{Gateways: list}
	if err != nil {
		out.Incomplete = "shared store unavailable: the list contains only the responding gateway"
	}
	return out, nil
}
