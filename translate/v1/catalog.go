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

// gpuTypes is the plain list of GPU types for names and prices, nil when the
// catalog cannot be read: an answer is worth more than its decoration.
func (r *request) gpuTypes(ctx context.Context) []any {
	types, _ := r.GPUs(ctx, translate.GPUQuery{})
	return types
}

// gpuCatalog holds the GPU types as pods show them. Those of a list are of few types, each of
// which is looked up once. It is used by one goroutine.
type gpuCatalog struct {
	types []any
	known map[string]listedGPU
}

// listedGPU holds the catalog's facts of a type: its id for a name and prices of 0 where it says nothing.
type listedGPU struct {
	id, name          string
	community, secure json.Number
}

func newGPUCatalog(types []any) *gpuCatalog {
	return &gpuCatalog{types: types, known: make(map[string]listedGPU)}
}

// lookup returns the GPU type with the id.
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

// gpuCatalog reads the catalog when one of the pods needs it.
func (r *request) gpuCatalog(ctx context.Context, pods ...any) *gpuCatalog {
	for _, pod := range pods {
		if translate.Text(pod, "gpu", "id") != "" {
			return newGPUCatalog(r.gpuTypes(ctx))
		}
	}
	return newGPUCatalog(nil)
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

// flavourIDs lists the bare CPU flavours of a body: "cpu5c-4-8" names an instance of "cpu5c".
func (r *request) flavourIDs() []string {
	var bare []string
	for _, id := range r.body.texts("cpuFlavorIds") {
		flavour, _, _ := strings.Cut(id, "-")
		bare = append(bare, flavour)
	}
	return bare
}

// flavours chooses the CPU flavours for a body, at most limit.
func (r *request) flavours(ctx context.Context, product, price string, vcpus int64, limit int) ([]string, []any, error) {
	w := &legacy.FlavourInput{IDs: r.flavourIDs(), Field: "cpuFlavorIds", VCPUs: vcpus, VCPUsField: "vcpuCount"}
	return r.Flavours(ctx, w, product, price, limit)
}

// cudaConstraint reads the CUDA constraint of a body.
func (r *request) cudaConstraint() (legacy.CUDA, error) {
	versions, _ := r.body["allowedCudaVersions"].([]string) // nil is not given, which is not empty
	return legacy.CUDAOf(versions, r.body.text("minCudaVersion"))
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
