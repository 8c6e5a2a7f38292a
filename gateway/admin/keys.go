package admin

import (
	"context"
	"net/http"
	"time"
)

// Keys makes and withdraws keys at run time. Its errors are ErrNoOrg, a RefusedError or
// those of the store.
type Keys interface {
	// List returns the keys of an organisation.
	List(ctx context.Context, org string) (any, error)
	// Create makes a key of a specification in JSON, which has the members of a key in
	// the configuration, and returns it with its secret, unless that is known by its
	// digest alone. by is who makes it.
	Create(ctx context.Context, org, spec, by string) (any, error)
	// Rotate gives a key another secret, which it returns; those it has are accepted for
	// the overlap.
	Rotate(ctx context.Context, org, id string, overlap time.Duration) (any, error)
	// Revoke withdraws a key; by is who does.
	Revoke(ctx context.Context, org, id, by string) error
}

func (d Deps) keys(r *http.Request) (any, error) {
	keys, err := d.Keys.List(r.Context(), r.URL.Query().Get("org"))
	return map[string]any{"keys": keys}, err
}

// createKey has the whole specification in its query, so that it is recorded with the
// intent.
func (d Deps) createKey(r *http.Request) (any, error) {
	q := r.URL.Query()
	return d.Keys.Create(r.Context(), q.Get("org"), q.Get("spec"), asking(r).author())
}

func (d Deps) rotateKey(r *http.Request) (any, error) {
	q := r.URL.Query()
	overlap, err := time.ParseDuration(q.Get("overlap"))
	if err != nil || overlap < 0 {
		return nil, BadRequestError{"overlap: want a duration such as 24h, at least 0s"}
	}
	return d.Keys.Rotate(r.Context(), q.Get("org"), q.Get("id"), overlap)
}

func (d Deps) revokeKey(r *http.Request) (any, error) {
	q := r.URL.Query()
	return nil, d.Keys.Revoke(r.Context(), q.Get("org"), q.Get("id"), asking(r).author())
}
