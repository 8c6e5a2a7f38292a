package envoy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// Merge maps names of listeners and clusters to JSON merge patches (RFC 7396). The patches are intended for Envoy features without a
// setting. Fields have the names of Envoy's protocol buffers, in snake_case.
type Merge struct{ Listeners, Clusters map[string]any }

// PatchError reports an invalid merge patch.
type PatchError struct {
	Kind, Name string // "listeners" or "clusters", and the name of the resource
	Err        error
}

// Error implements error.
func (e *PatchError) Error() string { return fmt.Sprintf("%s %s: %v", e.Kind, e.Name, e.Err) }

// Unwrap returns the cause.
func (e *PatchError) Unwrap() error { return e.Err }

// merged returns the resources with the patches applied. It returns an error if a patch is for a missing resource, or contains an unknown
// field or an invalid value.
func merged(kind string, list []types.Resource, patches map[string]any) ([]types.Resource, error) {
	list = slices.Clone(list)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(patches)) {
		i := slices.IndexFunc(list, func(r types.Resource) bool { return cache.GetResourceName(r) == name })
		err := errors.New("the group has no resource with this name")
		if i >= 0 {
			list[i], err = patched(list[i], patches[name])
		}
		if err != nil {
			errs = append(errs, &PatchError{kind, name, err})
		}
	}
	return list, errors.Join(errs...)
}

// patched returns a copy of a resource with a patch applied.
func patched(r types.Resource, patch any) (types.Resource, error) {
	before, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r)
	if err != nil {
		return r, err
	}
	var value any
	if err := json.Unmarshal(before, &value); err != nil {
		return r, err
	}
	after, err := json.Marshal(mergePatch(value, patch))
	if err != nil {
		return r, err
	}
	next, ok := r.ProtoReflect().New().Interface().(types.Resource)
	if !ok {
		return r, fmt.Errorf("%T is not a resource", r)
	}
	if err := protojson.Unmarshal(after, next); err != nil {
		return r, err
	}
	if got, want := cache.GetResourceName(next), cache.GetResourceName(r); got != want {
		return r, fmt.Errorf("the patch must not change the name of the resource to %q", got)
	}
	return next, validate(next)
}

// mergePatch implements RFC 7396, section 2.
func mergePatch(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := make(map[string]any)
	if t, ok := target.(map[string]any); ok {
		maps.Copy(out, t)
	}
	for name, value := range members {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = mergePatch(out[name], value)
		}
	}
	return out
}
