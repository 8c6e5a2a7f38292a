package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNoResource means that neither the ledger nor the platform has the resource.
var ErrNoResource = errors.New("ledger: no such resource")

// Assign changes the owner of a resource and returns the previous owner. The new owner pays for the resource from now on. If the resource
// is not in the ledger, Assign reads it from the platform.
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

// assignTries limits the attempts to assign a resource that changes during the assignment.
const assignTries = 3

// find fills in an adjustment for a resource that exists at the platform but not in the ledger.
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
