package decisions

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// Find returns the decision with the given ID from this gateway or from the archive. An unknown ID results in an [adminapi.RefusedError]
// with status 404.
func (d *Decisions) Find(ctx context.Context, s adminapi.Principal, id string) (*explain.Report, error) {
	return d.find(ctx, s, identified{id})
}
