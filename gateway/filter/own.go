package filter

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Own keeps callers from changing what is another's, where an organisation says so.
// What they may not change does not exist for them: the call goes on under an id
// that nothing has, so that its end is that of any such call, to the byte. It stands
// before the judge, which reads the object.
type Own struct{}

// Name implements Filter.
func (Own) Name() string { return "own" }

// Request refuses with 503 what cannot be told to be the caller's while the ledger
// cannot be asked, but for a stop, which loses nothing.
func (Own) Request(ctx context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	id := ex.Params["id"]
	if !ex.Tenant.Isolates() || !ex.Operation.Mutates || !spend.Counts(row.Kind) || id == "" || slices.Contains(ex.Caller.Roles, identity.RoleAdmin) {
		return nil
	}
	owner, err := ex.Ports.Ledger.Owner(ctx, ex.Caller.Org, id)
	switch {
	case err != nil && row.Does(ex.Doc) == operation.VerbStop:
		ex.Event.Cause = err
		return nil
	case err != nil:
		return problem.LedgerUnavailable.New("it cannot be told at the moment whose this is").With("Retry-After", "1").Because(err)
	case ex.Tenant.Shares(owner, ex.Caller):
		return nil
	}
	ex.Params = maps.Clone(ex.Params)
	ex.Params["id"] = absent(id)
	ex.foreign = fmt.Sprintf("%s %s belongs to %s, so it does not exist for this caller", row.Kind, id, owner)
	return nil
}

// absent is an id in the form of another one, which nothing has.
func absent(id string) string {
	const least = 14
	return strings.ToLower(rand.Text())[:min(26, max(least, len(id)))]
}

// Notes implements Noter.
func (f Own) Notes(ex *Exchange, stage string) []string {
	if stage != f.Name() || ex.foreign == "" {
		return nil
	}
	return []string{ex.foreign}
}
