package v1

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// poolTypes returns the serverless GPU types if one of the endpoints has pools, otherwise nil.
func (r *request) poolTypes(ctx context.Context, endpoints ...any) []any {
	for _, e := range endpoints {
		if len(v2.EndpointOf(e).Pools()) > 0 {
			types, _ := r.ServerlessTypes(ctx)
			return types
		}
	}
	return nil
}

// typesOf expands an endpoint's pools to GPU types. If the stored selection is the same set, it returns the stored order,
// because strict clients compare it with the order they sent.
func typesOf(e v2.Endpoint, types []any, remembered []string) []string {
	ids := legacy.GPUTypes(e, types)
	expanded := expandPools(remembered, types)
	if len(types) == 0 || slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(expanded))) {
		return remembered
	}
	return ids
}

// expandPools replaces pool names with the GPU types of the pools. It drops types that the catalog does not offer for serverless.
func expandPools(list []string, types []any) []string {
	var ids []string
	for _, id := range list {
		if members := legacy.InPool(types, id); len(members) > 0 {
			ids = append(ids, members...)
		} else if translate.Text(translate.ByID(types, id), "pool") != "" {
			ids = append(ids, id)
		}
	}
	return translate.Unique(ids)
}
