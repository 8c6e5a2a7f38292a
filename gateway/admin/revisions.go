package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Revisions knows the configurations that were in force.
type Revisions interface {
	// List returns them, the latest first.
	List(ctx context.Context) ([]Revision, error)
	// Diff compares the configuration in force, or the section of an organisation, with AgainstFile, with a revision, or with the revision
	// before for "". It returns row.ErrNoOrg for an organisation that is not configured.
	Diff(ctx context.Context, org, to string) (*ConfigDiff, error)
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

// revisionList is revisions as they are answered.
type revisionList struct {
	Revisions []Revision `json:"revisions"`
}

func (d Deps) revisionRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/config/revisions", Summary: "Configurations that were in force", Role: row.Admin, Ask: row.Do(d.revisions),
			Commands: []row.Command{{
				Use: "config revisions", Short: "List the configurations that were in force, of all gateways", Example: "tollgate config revisions",
				Long: `Lists the configurations that were in force at any gateway that shares the store,
the latest first. The latest 50 are kept for a year, without secrets.`,
			}},
		},
		{
			Pattern: "GET /admin/config/diff", Summary: "The differences between the configuration in force and another", Role: row.Admin, About: row.OfOrg, Ask: row.Do(d.configDiff), Fails: []int{http.StatusNotFound, http.StatusConflict},
			Commands: []row.Command{{
				Use: "config diff", Short: "Compare the configuration in force with the revision before, another one, or the file", Example: "tollgate config diff\ntollgate config diff --with file",
				Long: `Compares the configuration in force with the revision before it, with any that
"tollgate config revisions" lists, or with the file as it is now at the gateway that
is asked: so you see what a reload changes, or the fault that prevents it.`,
			}},
		},
	}
}

func (d Deps) revisions(ctx context.Context, _ row.Scope, _ row.None) (revisionList, error) {
	list, err := d.Revisions.List(ctx)
	return revisionList{list}, err
}

// compared selects the configuration that the one in force is compared with.
type compared struct {
	anyOrg

	With string `query:"with" max:"100" doc:"file, or a revision that is kept; absent is the revision before"`
}

func (d Deps) configDiff(ctx context.Context, _ row.Scope, p compared) (*ConfigDiff, error) {
	return d.Revisions.Diff(ctx, string(p.Org), p.With)
}
