package graphql

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// poolSelection is a choice of serverless GPUs in v2's terms.
type poolSelection struct{ pools, excluded []string }

// parseSelection reads the legacy notation "POOL,POOL,-TYPE". A GPU type
// without minus means its pool without the pool's other types.
func (x *exchange) parseSelection(ctx context.Context, text string) (poolSelection, error) {
	var s poolSelection
	var single []string // types chosen one by one
	for _, token := range translate.SplitList(text) {
		switch {
		case strings.HasPrefix(token, "-"):
			s.excluded = append(s.excluded, strings.TrimSpace(token[1:]))
		case looksLikePool(token):
			s.pools = append(s.pools, token)
		default:
			single = append(single, token)
		}
	}
	s.pools, s.excluded = translate.Unique(s.pools), translate.Unique(s.excluded)
	if len(single) > 0 {
		return x.addTypes(ctx, s, single)
	}
	if len(s.pools) == 0 {
		return s, badInput("gpuIds is required")
	}
	return s, nil
}

// looksLikePool tells a pool ("ADA_48_PRO") from a GPU type ("NVIDIA L4"); the
// platform has the last word.
func looksLikePool(token string) bool {
	return strings.Contains(token, "_") && strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func (x *exchange) addTypes(ctx context.Context, s poolSelection, types []string) (poolSelection, error) {
	pools, err := x.pools(ctx)
	if err != nil {
		return s, err
	}
	whole := slices.Clone(s.pools)
	for _, t := range types {
		i := slices.IndexFunc(pools, func(p gpuPool) bool { return slices.Contains(p.types, t) || p.id == t })
		switch {
		case i < 0:
			return s, badInput(`gpuIds: "` + engine.Clip(t) + `" is not available for serverless`)
		case pools[i].id == t:
			whole = append(whole, t)
		}
		s.pools = append(s.pools, pools[i].id)
	}
	s.pools = translate.Unique(s.pools)
	for _, p := range pools {
		if !slices.Contains(s.pools, p.id) || slices.Contains(whole, p.id) {
			continue
		}
		for _, t := range p.types {
			if !slices.Contains(types, t) {
				s.excluded = append(s.excluded, t)
			}
		}
	}
	s.excluded = translate.Unique(s.excluded)
	return s, nil
}

// places turns the text of locations into data centres: a centre, a country, or
// the first part of centre ids ("EU"). Words that mean nothing are passed over,
// but a text of such words only is refused: it may be a rule about where data
// lives, and no centre at all would mean any.
func (x *exchange) places(ctx context.Context, text string) ([]string, error) {
	tokens := translate.SplitList(text)
	if len(tokens) == 0 {
		return []string{}, nil
	}
	list, err := x.DataCenters(ctx, nil)
	if err != nil {
		return nil, err
	}
	all := legacy.IDs(list)
	var out []string
	for _, token := range tokens {
		found, err := x.place(ctx, token, all)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			x.Warn("locations", "unknown location "+token+" was left out")
		}
		out = append(out, found...)
	}
	if out = translate.Unique(out); len(out) == 0 {
		return nil, badInput("locations: no data center matches")
	}
	return out, nil
}

func (x *exchange) place(ctx context.Context, token string, all []string) ([]string, error) {
	if slices.Contains(all, token) {
		return []string{token}, nil
	}
	// An id begins with a country ("US") or a region ("EU", "EUR"), and then that is
	// the whole of it; other countries the catalog tells.
	var ids []string
	for _, id := range all {
		if strings.HasPrefix(id, token) {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 || !legacy.IsCountry(token) {
		return ids, nil
	}
	list, err := x.GPUs(ctx, translate.GPUQuery{Product: "SERVERLESS", CountryCodes: []string{token}})
	if err != nil {
		return nil, err
	}
	for _, entry := range list {
		ids = append(ids, centreIDs(entry)...)
	}
	return translate.Unique(ids), nil
}
