package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// gpuTypes returns the plain list of GPU types for names and prices, or nil if the catalog cannot be read, because an
// incomplete response is better than an error.
func (r *request) gpuTypes(ctx context.Context) []any {
	types, _ := r.GPUs(ctx, translate.GPUQuery{})
	return types
}

// gpuCatalog holds the GPU types as included in pods. It looks up each type once, because the pods of a list have few
// distinct types. It is not safe for concurrent use.
type gpuCatalog struct {
	types []any
	known map[string]listedGPU
}

// listedGPU holds the catalog data of a GPU type. If the catalog does not list it, the name is the id and the prices are
// 0.
type listedGPU struct {
	id, name          string
	community, secure json.Number
}

func newGPUCatalog(types []any) *gpuCatalog {
	return &gpuCatalog{types: types, known: make(map[string]listedGPU)}
}

// lookup returns the GPU type with the given id.
func (c *gpuCatalog) lookup(id string) listedGPU {
	known, ok := c.known[id]
	if !ok {
		var listed any
		if id != "" {
			listed = translate.ByID(c.types, id)
		}
		known = listedGPU{id, cmp.Or(translate.Text(listed, "name"), id), money(listed, "price", "community"), money(listed, "price", "secure")}
		c.known[id] = known
	}
	return known
}

// gpuCatalog reads the catalog if one of the pods has a GPU.
func (r *request) gpuCatalog(ctx context.Context, pods ...any) *gpuCatalog {
	for _, pod := range pods {
		if translate.Text(pod, "gpu", "id") != "" {
			return newGPUCatalog(r.gpuTypes(ctx))
		}
	}
	return newGPUCatalog(nil)
}

// vcpus returns the vCPU count of a body, at least 2. It rounds up to a power of two, with a warning.
func (r *request) vcpus() (int64, error) {
	asked := max(r.body.whole("vcpuCount", 2), 2)
	count := translate.PowerOfTwo(asked)
	if count == 0 {
		return 0, bad("vcpuCount: no machine has %d vCPUs", asked)
	}
	if count != asked {
		r.Warn("vcpuCount", "raised to "+translate.Int(count).String()+", the next power of two")
	}
	return count, nil
}

// flavourIDs returns the CPU flavours of a body without their sizes: "cpu5c-4-8" is an instance of "cpu5c".
func (r *request) flavourIDs() []string {
	var bare []string
	for _, id := range r.body.texts("cpuFlavorIds") {
		flavour, _, _ := strings.Cut(id, "-")
		bare = append(bare, flavour)
	}
	return bare
}

// flavours selects at most limit CPU flavours for a body.
func (r *request) flavours(ctx context.Context, product, price string, vcpus int64, limit int) ([]string, []any, error) {
	w := &legacy.FlavourInput{IDs: r.flavourIDs(), Field: "cpuFlavorIds", VCPUs: vcpus, VCPUsField: "vcpuCount"}
	return r.Flavours(ctx, w, product, price, limit)
}

// cudaConstraint returns the CUDA constraint of a body.
func (r *request) cudaConstraint() (legacy.CUDA, error) {
	versions, _ := r.body["allowedCudaVersions"].([]string) // nil means absent, unlike an empty list
	return legacy.CUDAOf(versions, r.body.text("minCudaVersion"))
}

// anyDataCenter is the default list of v1's schema, which means any data centre.
var anyDataCenter = []string{
	"EU-RO-1", "CA-MTL-1", "EU-SE-1", "US-IL-1", "EUR-IS-1", "EU-CZ-1", "US-TX-3", "EUR-IS-2",
	"US-KS-2", "US-GA-2", "US-WA-1", "US-TX-1", "CA-MTL-3", "EU-NL-1", "US-TX-4", "US-CA-2",
	"US-NC-1", "OC-AU-1", "US-DE-1", "EUR-IS-3", "CA-MTL-2", "AP-JP-1", "EUR-NO-1", "EU-FR-1",
	"US-KS-3", "US-GA-1",
}

// centres returns dataCenterIds; an empty result means any data centre.
func (r *request) centres() []string {
	given := translate.Unique(r.body.texts("dataCenterIds"))
	if everywhere(given) {
		return nil
	}
	return given
}

// everywhere reports whether a list without duplicates equals v1's default list as a set.
func everywhere(centres []string) bool {
	return len(centres) == len(anyDataCenter) &&
		!slices.ContainsFunc(centres, func(id string) bool { return !slices.Contains(anyDataCenter, id) })
}
