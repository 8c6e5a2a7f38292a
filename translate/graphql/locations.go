package graphql

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// places turns the text of locations into data centres: a centre, a country, or
// the first parts of centre ids ("EU", "EU-RO"). Words that mean nothing are passed over,
// but a string of such words only is refused: it may be a rule about where data
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
	// An id begins with a country ("US") or a region ("EU", "EUR": Iceland and Norway
	// are outside the EU), and then that is the whole of it; other countries the
	// catalog tells.
	var ids []string
	for _, id := range all {
		if strings.HasPrefix(id, token+"-") {
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
