package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNoResource means that neither the ledger nor the platform has the resource.
var ErrNoResource = errors.New("ledger: no such resource")

// Assign gives a resource to a new owner, who pays for it from now on, and returns the previous owner. If the ledger does not have the
// resource, Assign reads it from the platform.
func (r *Reconciler) Assign(ctx context.Context, org, resource string, to Owner) (was Owner, err error) {
	for range assignTries {
		state, err := r.Store.Show(ctx, org)
		if err != nil {
			return was, err
		}
		a := &Adjustment{Resource: resource, Owner: &to}
		if i := slices.IndexFunc(state.Resources, func(known Record) bool { return known.ID == resource }); i >= 0 {
			known := state.Resources[i]
			was, a.Kind, a.Version, a.Amounts = known.Owner, known.Kind, known.Version, known.Amounts
		} else if err := r.find(ctx, org, a); err != nil {
			return was, err
		}
		done, err := Adjust(ctx, r.Store, org, a)
		if err != nil || done {
			return was, err
		}
	}
	return was, fmt.Errorf("%w: calls for %s are in progress", ErrUnavailable, resource)
}

// assignTries limits the number of retries when the resource changes during the assignment.
const assignTries = 3

// find fills in an adjustment for a resource that the platform has and the ledger does not have.
func (r *Reconciler) find(ctx context.Context, org string, a *Adjustment) error {
	found, err := r.Platform.List(ctx, org, new(State).Has)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(found, func(f PlatformResource) bool { return f.ID == a.Resource })
	if i < 0 {
		return ErrNoResource
	}
	f := found[i]
	a.Kind, a.Amounts, a.Metadata = string(f.Kind), f.Amounts, f.about()
	return nil
}
