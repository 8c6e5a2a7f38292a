package admin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Keys makes and withdraws keys at run time. Its errors are ErrNoOrg, a RefusedError or
// those of the store.
type Keys interface {
	// List returns the keys of an organisation.
	List(ctx context.Context, org string) (any, error)
	// Create makes a key of a specification in JSON, which has the members of a key in
	// the configuration, and returns it with its secret, unless that is known by its
	// digest alone. by names the maker.
	Create(ctx context.Context, org, spec, by string) (any, error)
	// Rotate gives a key another secret, which it returns; those it has are accepted for
	// the overlap.
	Rotate(ctx context.Context, org, id string, overlap time.Duration) (any, error)
	// Revoke withdraws a key; by names the revoker.
	Revoke(ctx context.Context, org, id, by string) error
}

func (d Deps) keys(ctx context.Context, _ row.Scope, p scoped) (any, error) {
	keys, err := d.Keys.List(ctx, string(p.Org))
	return map[string]any{"keys": keys}, err
}

// made is a key to be made. The whole specification is a parameter, so that it is recorded with the intent.
type made struct {
	scoped

	Spec string `query:"spec,required" doc:"a key as under keys of the configuration, in JSON"`
}

func (d Deps) createKey(ctx context.Context, s row.Scope, p made) (any, error) {
	return d.Keys.Create(ctx, string(p.Org), p.Spec, author(s))
}

// keyed names a key.
type keyed struct {
	scoped

	ID string `query:"id,required" doc:"id of a key"`
}

// rotated is a key that gets another secret.
type rotated struct {
	keyed

	Overlap row.Span `query:"overlap,required" doc:"how long those it has are accepted, such as 24h"`
}

func (d Deps) rotateKey(ctx context.Context, _ row.Scope, p rotated) (any, error) {
	if p.Overlap < 0 {
		return nil, row.Bad("overlap", "must be at least 0s")
	}
	return d.Keys.Rotate(ctx, string(p.Org), p.ID, time.Duration(p.Overlap))
}

func (d Deps) revokeKey(ctx context.Context, s row.Scope, p keyed) (row.Nothing, error) {
	return row.Nothing{}, d.Keys.Revoke(ctx, string(p.Org), p.ID, author(s))
}
