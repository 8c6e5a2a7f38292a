package legacy

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// pools is a selection of serverless GPUs in the form that v2 accepts.
type pools struct{ ids, excluded []string }

// ServerlessTypes lists the GPU types with their serverless pools.
func (s *Session) ServerlessTypes(ctx context.Context) ([]any, error) {
	return s.GPUs(ctx, translate.GPUQuery{Product: "SERVERLESS"})
}

// InPool returns the GPU types of a pool in catalog order.
func InPool(types []any, pool string) []string {
	var members []string
	for _, t := range types {
		if translate.Text(t, "pool") == pool && pool != "" {
			members = append(members, translate.Text(t, "id"))
		}
	}
	return members
}

// Selection returns the GPU selection of an endpoint in the form of the legacy APIs: its pools, and its excluded types with a minus sign.
func Selection(e v2.Endpoint) string {
	tokens := e.Pools()
	for _, id := range e.Excluded() {
		tokens = append(tokens, "-"+id)
	}
	return strings.Join(tokens, ",")
}

// IsSelected reports whether tokens, in the form of Selection, still describe the endpoint's GPU selection.
func (s *Session) IsSelected(ctx context.Context, tokens []string, e v2.Endpoint) bool {
	matches := func(p pools) bool { return sameSet(p.ids, e.Pools()) && sameSet(p.excluded, e.Excluded()) }
	if p, unknown := selectPools(nil, tokens); len(unknown) == 0 && matches(p) {
		return true
	}
	// If the catalog cannot be read, the caller shows the selection of v2.
	types, err := s.ServerlessTypes(ctx)
	p, _ := selectPools(types, tokens)
	return err == nil && matches(p)
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// choosePools converts tokens to a selection of serverless GPUs. A token is a GPU type, a pool, or an excluded type with a minus sign. The
// result selects exactly the requested types according to the current catalog.
func (s *Session) choosePools(ctx context.Context, tokens []string) (pools, error) {
	if len(tokens) == 0 {
		return s.defaultPools(ctx)
	}
	var types []any
	chosen, unknown := selectPools(nil, tokens)
	if len(chosen.excluded) > 0 || len(unknown) > 0 {
		var err error
		types, err = s.ServerlessTypes(ctx)
		switch {
		case err == nil:
			chosen, unknown = selectPools(types, tokens)
		case len(unknown) > 0:
			return pools{}, err
		}
	}
	for _, id := range unknown {
		meant := didYouMean(id, types)
		if len(chosen.ids) == 0 {
			return pools{}, invalid(s.Quirks.GPUsField, "%.64q is not available for serverless%s", id, meant)
		}
		s.Warn(s.Quirks.GPUsField, "ignored "+id+", which is not available for serverless"+meant)
	}
	if len(chosen.ids) == 0 {
		return pools{}, invalid("", "%s is required", s.Quirks.GPUsField)
	}
	return chosen, nil
}

// selectPools converts tokens to pools and exclusions. Without a catalog, it recognises pools by their form and treats
// types as unknown. It drops an exclusion from a pool that is not selected, because v2 would reject it.
func selectPools(types []any, tokens []string) (p pools, unknown []string) {
	var exact, single []string
	for _, token := range tokens {
		excluded, isExclusion := strings.CutPrefix(token, "-")
		pool := translate.Text(translate.ByID(types, token), "pool")
		switch {
		case isExclusion:
			p.excluded = append(p.excluded, strings.TrimSpace(excluded))
		case pool != "":
			single, exact = append(single, pool), append(exact, token)
		case types == nil && looksLikePool(token) || len(InPool(types, token)) > 0:
			p.ids = append(p.ids, token)
		default:
			unknown = append(unknown, token)
		}
	}
	whole := slices.Clone(p.ids)
	p.ids = translate.Unique(append(p.ids, single...))
	if types == nil {
		return p, unknown
	}
	p.excluded = slices.DeleteFunc(p.excluded, func(id string) bool {
		return !slices.Contains(p.ids, translate.Text(translate.ByID(types, id), "pool"))
	})
	for _, pool := range p.ids {
		for _, id := range InPool(types, pool) {
			if !slices.Contains(whole, pool) && !slices.Contains(exact, id) {
				p.excluded = append(p.excluded, id)
			}
		}
	}
	p.excluded = translate.Unique(p.excluded)
	return p, unknown
}

// looksLikePool reports whether a token has the form of a pool ("ADA_48_PRO") rather than a GPU type ("NVIDIA L4"). The
// platform makes the final decision.
func looksLikePool(token string) bool {
	return strings.Contains(token, "_") && strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// maxDefaultPools is the number of pools of an endpoint if the caller names no GPU types.
const maxDefaultPools = 3

// defaultPools returns the pools that are in stock, sorted by their cheapest type.
func (s *Session) defaultPools(ctx context.Context) (pools, error) {
	if !s.Quirks.PicksDefaultPools {
		return pools{}, invalid("", "%s is required", s.Quirks.GPUsField)
	}
	types, err := s.ServerlessTypes(ctx)
	if err != nil {
		return pools{}, err
	}
	var ids []string
	for _, t := range byPrice(types, "price", "serverless") {
		if translate.Text(t, "availability") != "NONE" {
			ids = append(ids, translate.Text(t, "pool"))
		}
	}
	ids = translate.Unique(ids)
	ids = ids[:min(len(ids), maxDefaultPools)]
	if len(ids) == 0 {
		return pools{}, invalid(s.Quirks.GPUsField, "no GPU type is available for serverless")
	}
	s.Warn(s.Quirks.GPUsField, "selected "+strings.Join(ids, ",")+" by default")
	return pools{ids: ids}, nil
}
