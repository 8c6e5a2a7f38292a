package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// getTimeout is the time limit for reading one resource.
const getTimeout = 10 * time.Second

// Get reads one resource and its amounts for the given plan. It returns nil if the platform responds with 404, and an error for any other
// response without the resource.
func (c *Account) Get(
	ctx context.Context, org string, plan *ledger.Plan, kind operation.Kind, id string, prices *catalog.Snapshot,
) (*ledger.PlatformResource, error) {
	op := c.Gets[kind]
	if op == nil {
		return nil, fmt.Errorf("the platform's API has no operation that reads a resource of kind %s", kind)
	}
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	target := at(op.Path, id)
	doc, at, err := c.request(ctx, Request{Org: org, Method: http.MethodGet, Target: target})
	if errors.Is(err, errNotFound) {
		return nil, nil //nolint:nilnil // the resource does not exist
	}
	record, _ := doc.(map[string]any)
	if err == nil && record["id"] != id {
		err = fmt.Errorf("%w: GET %s returned a different resource", ErrUnreachable, target)
	}
	if err != nil {
		return nil, err
	}
	it := listed(kind, record, at)
	return &it.PlatformResource, c.measure(ctx, org, plan, &it, true, prices)
}
