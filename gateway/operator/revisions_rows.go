package operator

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// ActiveConfig is the configuration in force, or a section of it.
type ActiveConfig struct {
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Org is the organisation whose section it is, "" for the whole.
	Org string `json:"org,omitempty"`
	// YAML has no secrets.
	YAML string `json:"yaml"`
}

// AgainstFile compares with the file.
const AgainstFile = "file"

// Revision is a configuration that came into force. Gateway is the first that loaded it, and Version that of its program.
type Revision struct {
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	Gateway  string    `json:"gateway"`
	Version  string    `json:"version"`
}

// ConfigDiff is the difference of two configurations without secrets.
type ConfigDiff struct {
	// From and To are revisions, or "file".
	From string `json:"from"`
	To   string `json:"to"`
	// Diff is in the unified format, empty if nothing differs that is shown: secrets and digests of keys may.
	Diff string `json:"diff"`
	// Fault is why the file would not be taken; then there is no difference.
	Fault string `json:"fault,omitempty"`
}

// RevisionList is a list of revisions, the latest first.
type RevisionList struct {
	Revisions []Revision `json:"revisions"`
}

// Endpoints are the questions of operators about configurations. Those of nil can be read, and not be asked.
func (r *Revisions) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/config", Summary: "The configuration in force as YAML, without secrets", Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.inForce),
			Commands: []adminapi.Command{{
				Use: "config show", Short: "Show the configuration in force as YAML, without secrets", Example: "tollgate config show\ntollgate config show --org acme",
				Long: `Shows the configuration that the gateway works by, with its defaults, its revision
and when it was loaded. Secrets show where they come from; the digests of keys and
tokens are masked. With --org it is the section of the organisation.`,
			}},
		},
		{
			Pattern: "GET /admin/config/revisions", Summary: "Configurations that were in force", Role: adminapi.Admin, Handler: adminapi.HandlerFor(r.revisions),
			Commands: []adminapi.Command{{
				Use: "config revisions", Short: "List the configurations that were in force, of all gateways", Example: "tollgate config revisions",
				Long: `Lists the configurations that were in force at any gateway that shares the store,
the latest first. The latest 50 are kept for a year, without secrets.`,
			}},
		},
		{
			Pattern: "GET /admin/config/diff", Summary: "The differences between the configuration in force and another", Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.diff), ErrorStatuses: []int{http.StatusNotFound, http.StatusConflict},
			Commands: []adminapi.Command{{
				Use: "config diff", Short: "Compare the configuration in force with the revision before, another one, or the file", Example: "tollgate config diff\ntollgate config diff --with file",
				Long: `Compares the configuration in force with the revision before it, with any that
"tollgate config revisions" lists, or with the file as it is now at the gateway that
is asked: so you see what a reload changes, or the fault that prevents it.`,
			}},
		},
	}
}

func (r *Revisions) inForce(_ context.Context, _ adminapi.Principal, p adminapi.OptionalOrg) (*ActiveConfig, error) {
	now := r.Load()
	text, err := now.Config.Show(string(p.Org))
	if err == nil && text == nil {
		err = adminapi.ErrUnknownOrg
	}
	return &ActiveConfig{Revision: now.Config.Revision, Loaded: now.Loaded, Org: string(p.Org), YAML: string(text)}, err
}

func (r *Revisions) revisions(ctx context.Context, _ adminapi.Principal, _ adminapi.NoParams) (*RevisionList, error) {
	list, err := r.List(ctx)
	return &RevisionList{list}, err
}

// compared selects the configuration that the one in force is compared with.
type compared struct {
	adminapi.OptionalOrg

	With string `query:"with" max:"100" doc:"file, or a revision that is kept; absent is the revision before"`
}

func (r *Revisions) diff(ctx context.Context, _ adminapi.Principal, p compared) (*ConfigDiff, error) {
	return r.Diff(ctx, string(p.Org), p.With)
}
