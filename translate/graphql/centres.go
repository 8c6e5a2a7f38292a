package graphql

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// dataCenter is a data centre. Until full has been called, only id and name may be set.
type dataCenter struct {
	id, name string
	record   any // the catalog record; nil until needed
}

// full returns the catalog record, or nil if the catalog lacks it.
func (c *dataCenter) full(ctx context.Context, x *exchange) (any, error) {
	if c.record != nil {
		return c.record, nil
	}
	list, err := x.DataCenters(ctx, nil)
	if err != nil {
		return nil, err
	}
	return translate.ByID(list, c.id), nil
}

func dataCenters(ctx context.Context, x *exchange, in input) (any, error) {
	list, err := x.listCentres(ctx, in)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, r := range list {
		out[i] = &dataCenter{id: translate.Text(r, "id"), name: translate.Text(r, "name"), record: r}
	}
	return out, nil
}

// listCentres includes stock if it is selected, so that one call is enough.
func (x *exchange) listCentres(ctx context.Context, in input) ([]any, error) {
	if in.Selects("gpuAvailability") {
		return x.centresWithStock(ctx)
	}
	return x.DataCenters(ctx, nil)
}

func (x *exchange) centresWithStock(ctx context.Context) ([]any, error) {
	return x.DataCenters(ctx, url.Values{"include": {"GPU_AVAILABILITY"}})
}

func countryCodes(ctx context.Context, x *exchange, _ input) (any, error) {
	codes, err := x.countries(ctx)
	return translate.List(codes), err
}

// countries returns the country codes of the data centres, sorted.
func (x *exchange) countries(ctx context.Context) ([]string, error) {
	list, err := x.DataCenters(ctx, nil)
	if err != nil {
		return nil, err
	}
	var codes []string
	for _, id := range legacy.IDs(list) {
		codes = append(codes, translate.Location(id))
	}
	codes = translate.Unique(codes)
	slices.Sort(codes)
	return codes, nil
}

// regionName formats a region as words, which clients search and display.
func regionName(region string) string {
	words := strings.Split(strings.ToLower(region), "_")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}

func dataCenterFields() objectType {
	of := func(f func(record any) any) resolver {
		return field(func(ctx context.Context, x *exchange, c *dataCenter, _ input) (any, error) {
			record, err := c.full(ctx, x)
			if err != nil {
				return nil, err
			}
			return f(record), nil
		})
	}
	return objectType{
		"id": get(func(c *dataCenter) any { return c.id }),
		"name": field(func(ctx context.Context, x *exchange, c *dataCenter, _ input) (any, error) {
			if c.name != "" {
				return c.name, nil
			}
			record, err := c.full(ctx, x)
			return cmp.Or(translate.Text(record, "name"), c.id), err
		}),
		"location":        of(func(r any) any { return regionName(translate.Text(r, "region")) }),
		"listed":          of(func(r any) any { return r != nil }),
		"globalNetwork":   of(func(r any) any { return translate.Flag(r, "globalNetwork") }),
		"storageSupport":  of(func(r any) any { return len(translate.Items(r, "networkVolumeTypes")) > 0 }),
		"compliance":      of(func(r any) any { return translate.List(translate.Texts(r, "compliance")) }),
		"gpuAvailability": field(gpuAvailability),
	}
}

// gpuStock is the availability of a GPU type in one data centre.
type gpuStock struct{ id, name, level string }

// gpuAvailability lists the GPUs of a data centre. It uses the data centre's own record, or the GPU catalog for a count
// or cloud that the record does not cover.
func gpuAvailability(ctx context.Context, x *exchange, c *dataCenter, in input) (any, error) {
	a := in.object("input")
	count, _ := a.int("gpuCount")
	inSecure, given := a.bool("secureCloud")
	out := []any{}
	cuda, err := cudaOf(a)
	if err != nil {
		return nil, err
	}
	serverless, _ := a.bool("includeAiApi")
	if count <= 1 && (inSecure || !given) && !serverless && cuda.Any() {
		list, err := x.centresWithStock(ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range translate.Items(translate.ByID(list, c.id), "gpuAvailability") {
			out = append(out, gpuStock{translate.Text(g, "id"), translate.Text(g, "name"), translate.Text(g, "availability")})
		}
		return out, nil
	}
	cloud := secure
	if given && !inSecure {
		cloud = community
	}
	query := translate.GPUQuery{Product: "POD", Count: max(count, 1), Cloud: cloud, CUDAVersions: cuda.Versions, MinCUDA: cuda.Floor}
	if serverless {
		query.Product = "SERVERLESS"
	}
	list, err := x.GPUs(ctx, query)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		if centre := translate.ByID(translate.Items(g, "dataCenters"), c.id); centre != nil {
			out = append(out, gpuStock{translate.Text(g, "id"), translate.Text(g, "name"), translate.Text(centre, "availability")})
		}
	}
	return out, nil
}

func gpuAvailabilityFields() objectType {
	return objectType{
		"id":        get(func(s gpuStock) any { return s.id }),
		"gpuTypeId": get(func(s gpuStock) any { return s.id }),
		"gpuType": field(func(ctx context.Context, x *exchange, s gpuStock, _ input) (any, error) {
			return x.gpuByID(ctx, s.id)
		}),
		"displayName":        get(func(s gpuStock) any { return s.name }),
		"gpuTypeDisplayName": get(func(s gpuStock) any { return s.name }),
		"available":          get(func(s gpuStock) any { return s.level != "" && s.level != "NONE" }),
		"stockStatus": get(func(s gpuStock) any {
			if s.level == "NONE" {
				return nil
			}
			return orNull(stockWord(s.level))
		}),
	}
}
