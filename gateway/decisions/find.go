package decisions

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// Find returns a decision by its ID, of this gateway or from the archive. The error for an unknown ID is a [row.RefusedError] with status 404.
func (d *Decisions) Find(ctx context.Context, s adminapi.Principal, id string) (*explain.Report, error) {
	return d.find(ctx, s, identified{id})
}
