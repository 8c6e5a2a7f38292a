package v1

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
)

// gpuTypes is the plain list of GPU types for names and prices, nil when the
// catalog cannot be read: an answer is worth more than its decoration.
func (r *request) gpuTypes(ctx context.Context) []any {
	types, _ := r.Deps().Catalog.GPUs(ctx, r.Dialogue, translate.GPUQuery{})
	return types
}

// cards is gpuTypes when one of the pods needs it.
func (r *request) cards(ctx context.Context, pods ...any) []any {
	for _, pod := range pods {
		if translate.Text(pod, "gpu", "id") != "" {
			return r.gpuTypes(ctx)
		}
	}
	return nil
}

// cloudKey is the catalog's member name for a cloud.
func cloudKey(cloud string) string {
	if cloud == "COMMUNITY" {
		return "community"
	}
	return "secure"
}

// byPrice sorts catalog records by the price at path, cheapest first; records of
// one price stay in order.
func byPrice(records []any, path ...string) []any {
	sorted := slices.Clone(records)
	slices.SortStableFunc(sorted, func(a, b any) int {
		x, _ := translate.Number(translate.At(a, path...))
		y, _ := translate.Number(translate.At(b, path...))
		return cmp.Compare(x, y)
	})
	return sorted
}

// ids lists the ids of records.
func ids(records []any) []string {
	out := make([]string, 0, len(records))
	for _, record := range records {
		out = append(out, translate.Text(record, "id"))
	}
	return out
}

// flavour is the bare flavour of a CPU id: "cpu5c-4-8" names an instance of
// "cpu5c".
func flavour(id string) string {
	for i, c := range id {
		if c == '-' {
			return id[:i]
		}
	}
	return id
}

// vcpus reads the vCPU count of a body: at least 2, the next power of two with a
// warning.
func (r *request) vcpus() (int64, error) {
	asked := max(r.body.whole("vcpuCount", 2), 2)
	count := translate.PowerOfTwo(asked)
	if count == 0 {
		return 0, bad("vcpuCount: %d is beyond every machine", asked)
	}
	if count != asked {
		r.Warn("vcpuCount", "raised to "+translate.Int(count).String()+", the next power of two")
	}
	return count, nil
}

// allows reports whether a flavour comes with that many vCPUs. A record without
// bounds allows all.
func allows(flavour any, vcpus int64) bool {
	low, high := translate.Whole(flavour, "vcpu", "min"), translate.Whole(flavour, "vcpu", "max")
	return vcpus >= low && (high == 0 || vcpus <= high)
}

// flavours chooses the CPU flavours for a body: the given ones that exist and
// allow the count, or the cheapest ones with stock, at most limit.
func (r *request) flavours(ctx context.Context, product, price string, vcpus int64, limit int) ([]string, []any, error) {
	records, known := r.Deps().Catalog.CPUs(ctx, r.Dialogue, product, vcpus)
	var given []string
	for _, id := range r.body.texts("cpuFlavorIds") {
		given = append(given, flavour(id))
	}
	given = translate.Unique(given)
	switch {
	case !known && len(given) == 0:
		return nil, nil, lost(nil)
	case !known:
		return given, nil, nil
	case len(given) == 0:
		fit := slices.DeleteFunc(slices.Clone(records), func(f any) bool {
			return !allows(f, vcpus) || translate.Text(f, "availability") == "NONE"
		})
		fit = byPrice(fit, "price", price)
		return ids(fit[:min(len(fit), limit)]), records, nil
	}
	var kept []string
	for _, id := range given {
		record := translate.ByID(records, id)
		switch {
		case record == nil:
			r.Warn("cpuFlavorIds", id+" is not in the catalog, skipped")
		case !allows(record, vcpus):
			r.Warn("cpuFlavorIds", id+" does not come with "+translate.Int(vcpus).String()+" vCPUs, skipped")
		default:
			kept = append(kept, id)
		}
	}
	if len(kept) == 0 {
		return nil, nil, bad("cpuFlavorIds: none of them is available with vcpuCount %d", vcpus)
	}
	return kept, records, nil
}

// cuda reads the CUDA constraints of a body. v2 takes the list or the floor, so
// with both only the listed versions at or above the floor are left.
func (r *request) cuda() (versions []string, floor string, err error) {
	floor = r.body.text("minCudaVersion")
	if r.body.has("allowedCudaVersions") { // else nil: not given is not empty
		versions = translate.Unique(r.body.texts("allowedCudaVersions"))
	}
	for _, v := range versions {
		if _, ok := translate.ParseCUDA(v); !ok {
			return nil, "", bad("allowedCudaVersions: %.20q is not a version like 12.4", v)
		}
	}
	if floor == "" {
		return versions, "", nil
	}
	if _, ok := translate.ParseCUDA(floor); !ok {
		return nil, "", bad("minCudaVersion: %.20q is not a version like 12.4", floor)
	}
	if len(versions) == 0 {
		return versions, floor, nil
	}
	versions = translate.AtLeastCUDA(versions, floor)
	if len(versions) == 0 {
		return nil, "", bad("allowedCudaVersions: none is at least minCudaVersion %s", floor)
	}
	return versions, "", nil
}

// anyDataCenter is the list v1's own schema gave as the default: it stands for
// "anywhere".
var anyDataCenter = []string{
	"EU-RO-1", "CA-MTL-1", "EU-SE-1", "US-IL-1", "EUR-IS-1", "EU-CZ-1", "US-TX-3", "EUR-IS-2",
	"US-KS-2", "US-GA-2", "US-WA-1", "US-TX-1", "CA-MTL-3", "EU-NL-1", "US-TX-4", "US-CA-2",
	"US-NC-1", "OC-AU-1", "US-DE-1", "EUR-IS-3", "CA-MTL-2", "AP-JP-1", "EUR-NO-1", "EU-FR-1",
	"US-KS-3", "US-GA-1",
}

// centres reads dataCenterIds; none means anywhere.
func (r *request) centres() []string {
	given := translate.Unique(r.body.texts("dataCenterIds"))
	if everywhere(given) {
		return nil
	}
	return given
}

// everywhere reports whether a list without repetitions is v1's default as a set.
func everywhere(centres []string) bool {
	return len(centres) == len(anyDataCenter) &&
		!slices.ContainsFunc(centres, func(id string) bool { return !slices.Contains(anyDataCenter, id) })
}
