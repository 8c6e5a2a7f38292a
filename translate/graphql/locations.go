package graphql

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// places converts the locations string to data centre ids. Each part is a data centre, a country, or a prefix of data
// centre ids ("EU", "EU-RO"). It ignores unknown parts, but returns an error if all parts are unknown: the string may
// restrict where data is stored, and an empty list would allow any data centre.
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
			x.Warn("locations", "ignored the unknown location "+token)
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
	// A data centre id begins with a country ("US") or a region ("EU", "EUR"; Iceland and Norway are outside the EU).
	// Such a prefix needs no catalog query; other countries do.
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
