package v1

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// serverlessTypes lists the GPU types with their serverless pools.
func (r *request) serverlessTypes(ctx context.Context) ([]any, bool) {
	types, err := r.GPUs(ctx, translate.GPUQuery{Product: "SERVERLESS"})
	return types, err == nil
}

// poolCards is serverlessTypes when one of the endpoints needs it, nil else.
func (r *request) poolCards(ctx context.Context, endpoints ...any) []any {
	for _, e := range endpoints {
		if len(translate.Items(e, "gpu", "pools")) > 0 {
			types, _ := r.serverlessTypes(ctx)
			return types
		}
	}
	return nil
}

// maxDefaultPools is how many pools an endpoint gets when the caller names no
// types.
const maxDefaultPools = 3

// selectTypes turns v1's cards into v2's pools minus cards: the result is the
// requested set exactly, as the catalog stands today.
func (r *request) selectTypes(ctx context.Context, gpu map[string]any) error {
	types, known := r.serverlessTypes(ctx)
	if !known {
		return lost(nil)
	}
	asked := translate.Unique(r.body.texts("gpuTypeIds"))
	if len(asked) == 0 {
		pools := cheapestPools(types)
		if len(pools) == 0 {
			return bad("gpuTypeIds: nothing is available for serverless")
		}
		r.Warn("gpuTypeIds", "none given, chose "+strings.Join(pools, ","))
		gpu["pools"] = translate.List(pools)
		return nil
	}
	var pools, cards []string
	for _, id := range asked {
		pool := translate.Text(translate.ByID(types, id), "pool")
		switch {
		case pool != "":
			pools, cards = append(pools, pool), append(cards, id)
		case len(inPool(types, id)) > 0: // a pool by its own name
			pools, cards = append(pools, id), append(cards, inPool(types, id)...)
		default:
			r.Warn("gpuTypeIds", id+" is not available for serverless, skipped")
		}
	}
	pools = translate.Unique(pools)
	if len(pools) == 0 {
		return bad("gpuTypeIds: %q is not available for serverless", asked[0])
	}
	gpu["pools"] = translate.List(pools)
	var excluded []string
	for _, pool := range pools {
		for _, id := range inPool(types, pool) {
			if !slices.Contains(cards, id) {
				excluded = append(excluded, id)
			}
		}
	}
	if len(excluded) > 0 {
		gpu["excludedTypes"] = translate.List(excluded)
	}
	return nil
}

// inPool lists the types of a pool in catalog order.
func inPool(types []any, pool string) []string {
	var members []string
	for _, t := range types {
		if translate.Text(t, "pool") == pool && pool != "" {
			members = append(members, translate.Text(t, "id"))
		}
	}
	return members
}

// cheapestPools are the pools with stock, by their cheapest card.
func cheapestPools(types []any) []string {
	var pools []string
	for _, t := range legacy.ByPrice(types, "price", "serverless") {
		if translate.Text(t, "availability") != "NONE" {
			pools = append(pools, translate.Text(t, "pool"))
		}
	}
	pools = translate.Unique(pools)
	return pools[:min(len(pools), maxDefaultPools)]
}

// typesOf expands an endpoint's pools to cards. When the note has the same set
// its order is given back: strict clients compare what they sent.
func typesOf(endpoint any, types []any, remembered []string) []string {
	excluded := translate.Texts(endpoint, "gpu", "excludedTypes")
	var cards []string
	for _, pool := range translate.Texts(endpoint, "gpu", "pools") {
		for _, id := range inPool(types, pool) {
			if !slices.Contains(excluded, id) {
				cards = append(cards, id)
			}
		}
	}
	cards = translate.Unique(cards)
	expanded := expandPools(remembered, types)
	if len(types) == 0 || slices.Equal(slices.Sorted(slices.Values(cards)), slices.Sorted(slices.Values(expanded))) {
		return remembered
	}
	return cards
}

// expandPools replaces pool names by their cards and leaves out what the catalog
// does not sell for serverless.
func expandPools(list []string, types []any) []string {
	var cards []string
	for _, id := range list {
		if members := inPool(types, id); len(members) > 0 {
			cards = append(cards, members...)
		} else if translate.Text(translate.ByID(types, id), "pool") != "" {
			cards = append(cards, id)
		}
	}
	return translate.Unique(cards)
}

// gpuIDs is the text form of a selection some clients read back: pools, and the
// excluded cards with a minus sign.
func gpuIDs(endpoint any) string {
	parts := translate.Texts(endpoint, "gpu", "pools")
	for _, id := range translate.Texts(endpoint, "gpu", "excludedTypes") {
		parts = append(parts, "-"+id)
	}
	return strings.Join(parts, ",")
}
