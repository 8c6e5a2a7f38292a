package graphql

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// lowest is the result of lowestPrice: a GPU type in one cloud with a GPU count.
type lowest struct {
	entry   any // the GPU type with its availability for the query; nil if not listed
	gpu     gpuType
	cloud   string
	product string
	count   int64
	level   string
	country string
	nowhere bool // the country has no data centre
	query   translate.GPUQuery
	filter  centreFilter
}

// centreFilter restricts availability to some data centres.
type centreFilter struct {
	on  bool
	ids []string
}

// none reports whether nothing is in stock. Prices are null then.
func (l *lowest) none() bool { return l.level == "" || l.level == "NONE" }

func (l *lowest) price() any {
	if l.none() {
		return nil
	}
	unit := cloudPriceOf(l.gpu.entry, l.cloud)
	if l.product == "SERVERLESS" {
		unit = number(l.gpu.entry, "price", "serverless")
	}
	return total(unit, l.count)
}

// lowestPrice returns the cheapest cloud that has the GPU type in stock. It makes one catalog call for each distinct
// combination of count, cloud, country and CUDA constraint, whatever the number of types.
func lowestPrice(ctx context.Context, x *exchange, g gpuType, in input) (any, error) {
	wanted, err := engine.Memoize(in.Input, func() (lowest, error) { return wantedPrice(ctx, x, in.object("input")) })
	if err != nil {
		return nil, err
	}
	wanted.gpu = g
	var best *lowest
	for _, cloud := range priceClouds(in.object("input")) {
		here := wanted
		here.cloud, here.query.Cloud = cloud, cloud
		if err := here.fill(ctx, x); err != nil {
			return nil, err
		}
		if best == nil || best.none() && !here.none() || !here.none() && number(here.price()) < number(best.price()) {
			best = &here
		}
	}
	return best, nil
}

// wantedPrice reads the input of lowestPrice, which does not depend on the GPU type.
func wantedPrice(ctx context.Context, x *exchange, a args) (lowest, error) {
	count, _ := a.int("gpuCount")
	l := lowest{count: max(count, 1), product: "POD", country: strings.ToUpper(a.text("countryCode"))}
	if on, _ := a.bool("includeAiApi"); on {
		l.product = "SERVERLESS"
	}
	if l.country != "" && !legacy.IsCountry(l.country) {
		return l, badInput("countryCode must be two letters")
	}
	c, err := cudaOf(a)
	if err != nil {
		return l, err
	}
	if l.filter, err = priceFilter(ctx, x, a); err != nil {
		return l, err
	}
	l.query = translate.GPUQuery{Product: l.product, Count: l.count, CUDAVersions: c.Versions, MinCUDA: c.Floor}
	if l.country == "" {
		return l, nil
	}
	l.query.CountryCodes = []string{l.country}
	if x.anonymous() { // a caller without a credential must not cause platform calls for nonexistent countries
		known, err := x.countries(ctx)
		l.nowhere = !slices.Contains(known, l.country)
		return l, err
	}
	return l, nil
}

// priceClouds lists the clouds to compare, SECURE first.
func priceClouds(a args) []string {
	switch on, given := a.bool("secureCloud"); {
	case !given:
		return []string{secure, community}
	case on:
		return []string{secure}
	}
	return []string{community}
}

func priceFilter(ctx context.Context, x *exchange, a args) (centreFilter, error) {
	var f centreFilter
	if id := a.text("dataCenterId"); id != "" {
		f = centreFilter{true, []string{id}}
	}
	if list := translate.Unique(a.texts("compliance")); len(list) > 0 {
		ids, err := x.compliantCentres(ctx, list, f.ids)
		return centreFilter{true, ids}, err
	}
	return f, nil
}

// fill reads the availability of the GPU type in the cloud.
func (l *lowest) fill(ctx context.Context, x *exchange) error {
	if l.nowhere || !carried(l.gpu.entry, l.cloud) {
		return nil
	}
	if l.count > mostIn(l.gpu.entry, l.cloud) {
		return nil
	}
	list, err := x.GPUs(ctx, l.query)
	if err != nil {
		return err
	}
	l.entry = translate.ByID(list, translate.Text(l.gpu.entry, "id"))
	l.level = l.filter.level(l.entry)
	return nil
}

// mostIn returns the maximum number of GPUs of a type per machine in a cloud. The number is unlimited if the catalog does not specify it.
func mostIn(entry any, cloud string) int64 {
	if most := translate.Whole(entry, "maxCount", member(cloud)); most > 0 {
		return most
	}
	return math.MaxInt64
}

// level returns the best availability of a catalog entry within the filter.
func (f centreFilter) level(entry any) string {
	if !f.on {
		return translate.Text(entry, "availability")
	}
	best := "NONE"
	for _, id := range f.ids {
		if word := levelAt(entry, id); translate.Level(word) < translate.Level(best) {
			best = word
		}
	}
	return best
}

// levelAt returns the availability in one data centre, which is NONE if the entry does not list it.
func levelAt(entry any, id string) string {
	centre := translate.ByID(translate.Items(entry, "dataCenters"), id)
	if centre == nil {
		return "NONE"
	}
	return translate.Text(centre, "availability")
}

// stockWord converts an availability level to the legacy word, or "" if it is unknown.
func stockWord(level string) string {
	switch level {
	case "HIGH":
		return "High"
	case "MEDIUM":
		return "Medium"
	case "LOW":
		return "Low"
	case "NONE":
		return "None"
	}
	return ""
}

// counts returns which of the common GPU counts are in stock.
func (l *lowest) counts(ctx context.Context, x *exchange) ([]int64, error) {
	var out []int64
	for _, n := range []int64{1, 2, 4, 8} {
		here := *l
		here.level = ""
		here.count, here.query.Count = n, n
		if err := here.fill(ctx, x); err != nil {
			return nil, err
		}
		if !here.none() {
			out = append(out, n)
		}
	}
	return out, nil
}

func lowestPriceFields() objectType {
	return objectType{
		"gpuName":              get(func(l *lowest) any { return translate.Text(l.gpu.entry, "name") }),
		"gpuTypeId":            get(func(l *lowest) any { return translate.Text(l.gpu.entry, "id") }),
		"minimumBidPrice":      get(func(l *lowest) any { return l.price() }),
		"uninterruptablePrice": get(func(l *lowest) any { return l.price() }),
		"interruptablePrice":   always(nil),
		"maxGpuCount": get(func(l *lowest) any {
			return orNil(translate.Whole(l.gpu.entry, "maxCount", member(l.cloud)))
		}),
		"minMemory":   least(func(memory, _ int64) int64 { return memory }),
		"minVcpu":     least(func(_, vcpus int64) int64 { return vcpus }),
		"compliance":  always([]any{}),
		"countryCode": get(func(l *lowest) any { return orNull(l.country) }),
		"cudaVersion": always(nil),
		"stockStatus": field(func(_ context.Context, x *exchange, l *lowest, _ input) (any, error) {
			switch {
			case !l.none():
			case x.config().Legacy.Answers == legacy.Strict:
				return stockWord("NONE"), nil
			default: // clients treat any word as in stock
				return nil, nil
			}
			return orNull(stockWord(l.level)), nil
		}),
		"availableGpuCounts": field(func(ctx context.Context, x *exchange, l *lowest, _ input) (any, error) {
			counts, err := l.counts(ctx, x)
			if err != nil {
				return nil, err
			}
			return translate.List(counts), nil
		}),
		"maxUnreservedGpuCount": field(func(ctx context.Context, x *exchange, l *lowest, _ input) (any, error) {
			counts, err := l.counts(ctx, x)
			if err != nil || len(counts) == 0 {
				return 0, err
			}
			return slices.Max(counts), nil
		}),
		"gpuTypeCudaVersions": get(func(l *lowest) any { return records(translate.Items(l.entry, "cudaVersions")) }),
	}
}

// least returns a resolver for the minimum resources of a pod with the type and count. The value is null if no such pod is possible.
// Clients discard offers without these minimums, even if they are in stock.
func least(pick func(memory, vcpus int64) int64) resolver {
	return field(func(_ context.Context, x *exchange, l *lowest, _ input) (any, error) {
		if l.nowhere || !carried(l.gpu.entry, l.cloud) || l.count > mostIn(l.gpu.entry, l.cloud) {
			return nil, nil
		}
		return pick(x.Deps().Catalog.SmallestMachine(translate.Text(l.gpu.entry, "id"), l.count)), nil
	})
}

func cudaFields() objectType {
	return objectType{
		"cudaVersion": get(func(v map[string]any) any { return translate.Text(v, "version") }),
		"availability": get(func(v map[string]any) any {
			if translate.Flag(v, "available") {
				return "AVAILABLE"
			}
			return "UNAVAILABLE"
		}),
	}
}
