package operator

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// ActiveConfig is the configuration in force, or a part of it.
type ActiveConfig struct {
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	// Org is the organisation that the part belongs to, or "" for the whole configuration.
	Org string `json:"org,omitempty"`
	// YAML is the configuration without secrets.
	YAML string `json:"yaml"`
}

// AgainstFile is passed to [Revisions.Diff] to compare with the configuration file on disk.
const AgainstFile = "file"

// Revision is a configuration that was in force. Gateway and Version identify the gateway that loaded it first.
type Revision struct {
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
	Gateway  string    `json:"gateway"`
	Version  string    `json:"version"`
}

// ConfigDiff is the difference between two configurations without secrets.
type ConfigDiff struct {
	// From and To are revisions, or "file".
	From string `json:"from"`
	To   string `json:"to"`
	// Diff is a unified diff. It is empty if there are no visible differences; secrets and digests of keys are not compared.
	Diff string `json:"diff"`
	// Fault is the reason why the file would be rejected; in that case there is no diff.
	Fault string `json:"fault,omitempty"`
}

// RevisionList is a list of revisions, newest first.
type RevisionList struct {
	Revisions []Revision `json:"revisions"`
}

// Endpoints returns the endpoints for configurations. A nil receiver returns endpoints that can be listed but not called.
func (r *Revisions) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/config", Summary: "Configuration in force as YAML, without secrets",
			Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.inForce),
			Commands: []adminapi.Command{{
				Use: "config show", Heading: "Operate", Group: "Show the configuration of a running gateway",
				Short: "Show the configuration in force as YAML, without secrets", Example: "tollgate config show\ntollgate config show --org acme",
				Long: `Shows the configuration in force with its defaults, its revision, and the time when it
was loaded. Secrets are replaced by their sources; the digests of keys and tokens are
masked. With --org, shows only the section of the organisation.`,
			}},
		},
		{
			Pattern: "GET /admin/config/revisions", Summary: "Earlier configurations", Role: adminapi.Admin,
			Handler: adminapi.HandlerFor(r.revisions),
			Commands: []adminapi.Command{{
				Use: "config revisions", Short: "List the configurations that were in force on any gateway", Example: "tollgate config revisions",
				Long: `Lists the configurations that were in force on any gateway that shares the store,
newest first. The newest 50 are stored for a year, without secrets.`,
			}},
		},
		{
			Pattern: "GET /admin/config/diff", Summary: "Differences between the configuration in force and another", Role: adminapi.Admin,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.diff), ErrorStatuses: []int{http.StatusNotFound, http.StatusConflict},
			Commands: []adminapi.Command{{
				Use: "config diff", Short: "Compare the configuration in force with an earlier revision or with the configuration file",
				Example: "tollgate config diff\ntollgate config diff --with file",
				Long: `Compares the configuration in force with the previous revision, with a revision listed
by "tollgate config revisions", or with the current file of the queried gateway. The
comparison with the file shows what a reload would change, or the error that prevents it.`,
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

// compared selects the configuration to compare with.
type compared struct {
	adminapi.OptionalOrg

	With string `query:"with" max:"100" doc:"stored revision to compare with, or file for the configuration file; default: previous revision"`
}

func (r *Revisions) diff(ctx context.Context, _ adminapi.Principal, p compared) (*ConfigDiff, error) {
	return r.Diff(ctx, string(p.Org), p.With)
}
