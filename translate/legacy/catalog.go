package legacy

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// catalog reads from the shared cache. Each distinct call is made once per request.
func (s *Session) catalog(ctx context.Context, operation, member string, query url.Values) ([]any, error) {
	list, err := s.MemoizeForRequest(operation+"\x00"+query.Encode(),
		func() (any, error) { return s.readCatalog(ctx, operation, member, query) })
	items, _ := list.([]any)
	return items, err
}

// readCatalog reads from the shared cache.
func (s *Session) readCatalog(ctx context.Context, operation, member string, query url.Values) ([]any, error) {
	body, failed := s.Deps().Catalog.Read(ctx, s.Client, &translate.Request{Operation: operation, Query: query}, member)
	if failed != nil {
		return nil, &RefusedError{Purpose{Verb: "read the catalog", Noun: NounCatalog}, failed.Response, failed.Err}
	}
	return translate.Items(body, member), nil
}

// GPUs lists the GPU types that match a query. One response may need the same list for each of its GPU types, so only the first read
// encodes the query.
func (s *Session) GPUs(ctx context.Context, q translate.GPUQuery) ([]any, error) {
	key := strings.Join([]string{
		q.Product, translate.Int(q.Count).String(), q.Cloud,
		strings.Join(q.CountryCodes, ","), strings.Join(q.CUDAVersions, ","), q.MinCUDA,
	}, "\x00")
	list, err := s.MemoizeForRequest(key, func() (any, error) { return s.readCatalog(ctx, "listGpuTypes", "gpus", q.Values()) })
	items, _ := list.([]any)
	return items, err
}

// CPUs lists CPU flavours with their availability for a product (POD or SERVERLESS) and a vCPU count; 0 means any.
func (s *Session) CPUs(ctx context.Context, product string, vcpus int64) ([]any, error) {
	query := url.Values{"include": {"AVAILABILITY"}, "product": {product}}
	if vcpus > 0 {
		query.Set("vcpuCount", translate.Int(vcpus).String())
	}
	return s.catalog(ctx, "listCpuTypes", "cpus", query)
}

// DataCenters lists the data centres that match the query.
func (s *Session) DataCenters(ctx context.Context, query url.Values) ([]any, error) {
	return s.catalog(ctx, "listDataCenters", "dataCenters", query)
}

// PublicTemplates lists the public templates of one source.
func (s *Session) PublicTemplates(ctx context.Context, source string) ([]any, error) {
	return s.catalog(ctx, "listPublicTemplates", "templates", url.Values{"source": {source}})
}

// byPrice returns catalog records sorted by the price at path, cheapest first. Records with equal prices keep their order.
func byPrice(records []any, path ...string) []any {
	sorted := slices.Clone(records)
	slices.SortStableFunc(sorted, func(a, b any) int {
		return cmp.Compare(number(a, path...), number(b, path...))
	})
	return sorted
}

func number(v any, path ...string) float64 {
	f, _ := translate.Number(translate.At(v, path...))
	return f
}

// IDs returns the ids of records.
func IDs(records []any) []string {
	ids := make([]string, 0, len(records))
	for _, record := range records {
		ids = append(ids, translate.Text(record, "id"))
	}
	return ids
}

// FlavourInput holds a caller's choice of CPU flavours.
type FlavourInput struct {
	// IDs holds the flavours in the caller's order. If it is empty, the cheapest flavours in stock are selected. Field and VCPUsField are the
	// caller's field names, for messages.
	IDs        []string
	Field      string
	VCPUs      int64
	VCPUsField string
	// MemoryGB is the minimum memory of flavours that are selected automatically.
	MemoryGB int64
}

// Flavours selects CPU flavours of a product for a pod or worker with w.VCPUs vCPUs. If the caller named flavours, it selects those that
// exist and support this number. Otherwise it selects the cheapest flavours in stock, at most limit, by the member price of the catalog.
// records holds the catalog records, or nil if the catalog cannot be read.
func (s *Session) Flavours(
	ctx context.Context, w *FlavourInput, product, price string, limit int,
) (chosen []string, records []any, err error) {
	records, err = s.CPUs(ctx, product, w.VCPUs)
	given := translate.Unique(w.IDs)
	switch {
	case err != nil && len(given) == 0:
		return nil, nil, err
	case err != nil:
		return given, nil, nil //nolint:nilerr // the platform decides about what was given
	case len(given) == 0:
		fit := slices.DeleteFunc(slices.Clone(records), func(f any) bool { return !comesWith(f, w.VCPUs) })
		if len(fit) == 0 {
			return nil, nil, invalid(w.VCPUsField, "no CPU flavour is available with %d vCPUs", w.VCPUs)
		}
		fit = slices.DeleteFunc(fit, func(f any) bool {
			return translate.Text(f, "availability") == "NONE" || number(f, "ramGbPerVcpu")*float64(w.VCPUs) < float64(w.MemoryGB)
		})
		fit = byPrice(fit, "price", price)
		return IDs(fit[:min(len(fit), limit)]), records, nil
	}
	for _, id := range given {
		record := translate.ByID(records, id)
		switch {
		case record == nil:
			s.Warn(w.Field, "ignored "+id+", which is not in the catalog")
		case !comesWith(record, w.VCPUs):
			s.Warn(w.Field, "ignored "+id+", which is not available with "+translate.Int(w.VCPUs).String()+" vCPUs")
		default:
			chosen = append(chosen, id)
		}
	}
	if len(chosen) == 0 {
		return nil, nil, invalid(w.Field, "none of the flavours is available with %d vCPUs", w.VCPUs)
	}
	return chosen, records, nil
}

// comesWith reports whether a flavour is available with the given number of vCPUs. A record without bounds allows any number.
func comesWith(flavour any, vcpus int64) bool {
	low, high := translate.Whole(flavour, "vcpu", "min"), translate.Whole(flavour, "vcpu", "max")
	return vcpus >= low && (high == 0 || vcpus <= high)
}
