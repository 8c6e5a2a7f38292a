package graphql

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// compliantCentres returns the ids of the data centres that meet every requirement in list. If named is not empty, it returns only ids in
// named.
func (x *exchange) compliantCentres(ctx context.Context, list, named []string) ([]string, error) {
	centres, err := x.DataCenters(ctx, url.Values{"compliance": {strings.Join(list, ",")}})
	if err != nil {
		return nil, err
	}
	ids := legacy.IDs(centres)
	if len(named) == 0 {
		return ids, nil
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(named, id) }), nil
}

// centreIDs returns the ids of the data centres in a catalog record.
func centreIDs(entry any) []string { return legacy.IDs(translate.Items(entry, "dataCenters")) }

// member returns the member of catalog records that holds the data of a cloud.
func member(cloud string) string {
	if cloud == community {
		return "community"
	}
	return "secure"
}

// carried reports whether the cloud offers the GPU type.
func carried(entry any, cloud string) bool { return translate.Flag(entry, member(cloud)) }

// cloudPriceOf returns the price of one GPU per hour.
func cloudPriceOf(entry any, cloud string) float64 { return number(entry, "price", member(cloud)) }

// cloudPrice returns the price of one GPU per hour. It returns nil if the cloud does not offer the type, because v2 returns a price even
// then.
func cloudPrice(entry any, cloud string) any {
	if !carried(entry, cloud) {
		return nil
	}
	return cloudPriceOf(entry, cloud)
}

// total multiplies and rounds a price to six decimals, to remove binary rounding errors.
func total(price float64, count int64) float64 { return math.Round(price*float64(count)*1e6) / 1e6 }

// gpuEntry returns the catalog record of a GPU type, or nil.
func (x *exchange) gpuEntry(ctx context.Context, id string) (any, error) {
	if id == "" {
		return nil, nil
	}
	list, err := x.GPUs(ctx, translate.GPUQuery{})
	if err != nil {
		return nil, err
	}
	return translate.ByID(list, id), nil
}

// gpuType is a GPU type as a value of the schema.
type gpuType struct{ entry any }

func (x *exchange) gpuByID(ctx context.Context, id string) (any, error) {
	entry, err := x.gpuEntry(ctx, id)
	if err != nil || entry == nil {
		return nil, err
	}
	return gpuType{entry}, nil
}

func gpuTypes(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	list, err := x.GPUs(ctx, translate.GPUQuery{})
	if err != nil {
		return nil, err
	}
	ids := translate.Unique(append(a.texts("ids"), a.text("id")))
	clustered, _ := a.bool("cluster")
	out := []any{}
	for _, entry := range list {
		id := translate.Text(entry, "id")
		if len(ids) > 0 && !slices.Contains(ids, id) {
			continue
		}
		if clustered {
			c, err := x.clusterEntry(ctx, id)
			if err != nil {
				return nil, err
			}
			if c == nil {
				continue
			}
		}
		out = append(out, gpuType{entry})
	}
	return out, nil
}

// clusterEntry returns the catalog record of a GPU type that is available in clusters, or nil.
func (x *exchange) clusterEntry(ctx context.Context, id string) (any, error) {
	list, err := x.GPUs(ctx, translate.GPUQuery{Product: "CLUSTER"})
	if err != nil {
		return nil, err
	}
	entry := translate.ByID(list, id)
	if level := translate.Text(entry, "availability"); level == "" || level == "NONE" {
		return nil, nil
	}
	return entry, nil
}

func catalogTypes() map[string]objectType {
	return map[string]objectType{
		"GpuType":            gpuTypeFields(),
		"LowestPrice":        lowestPriceFields(),
		"GpuTypeCudaVersion": cudaFields(),
		"ServerlessGpuPool": {
			"id":         get(func(p gpuPool) any { return p.id }),
			"gpuTypeIds": get(func(p gpuPool) any { return translate.List(p.types) }),
		},
		"CpuType":   cpuTypeFields(),
		"CpuFlavor": cpuFlavorFields(),
		"CpuFlavorSpecifics": {
			"stockStatus": get(func(s cpuSpecifics) any { return s.stock }),
			"securePrice": get(func(s cpuSpecifics) any { return total(number(s.entry, "price", "securePerVcpu"), s.vcpus) }),
			"slsPrice":    get(func(s cpuSpecifics) any { return total(number(s.entry, "price", "serverlessPerVcpu"), s.vcpus) }),
		},
		"DataCenter":      dataCenterFields(),
		"GpuAvailability": gpuAvailabilityFields(),
	}
}

func gpuTypeFields() objectType {
	count := func(cloud string) func(g gpuType) int64 {
		return func(g gpuType) int64 { return translate.Whole(g.entry, "maxCount", cloud) }
	}
	inSecure, inCommunity := count("secure"), count("community")
	return objectType{
		"id":           get(func(g gpuType) any { return translate.Text(g.entry, "id") }),
		"displayName":  get(func(g gpuType) any { return translate.Text(g.entry, "name") }),
		"memoryInGb":   get(func(g gpuType) any { return translate.Whole(g.entry, "memory") }),
		"manufacturer": get(func(g gpuType) any { return manufacturer(translate.Text(g.entry, "manufacturer")) }),
		"cudaCores":    always(0),
		"throughput":   always(nil),

		"secureCloud":    get(func(g gpuType) any { return carried(g.entry, secure) }),
		"communityCloud": get(func(g gpuType) any { return carried(g.entry, community) }),
		"securePrice":    get(func(g gpuType) any { return cloudPrice(g.entry, secure) }),
		"communityPrice": get(func(g gpuType) any { return cloudPrice(g.entry, community) }),

		"secureSpotPrice": always(nil), "communitySpotPrice": always(nil),
		"oneWeekPrice": always(nil), "oneMonthPrice": always(nil),
		"threeMonthPrice": always(nil), "sixMonthPrice": always(nil),

		"maxGpuCount":               get(func(g gpuType) any { return max(inSecure(g), inCommunity(g)) }),
		"maxGpuCountSecureCloud":    get(func(g gpuType) any { return inSecure(g) }),
		"maxGpuCountCommunityCloud": get(func(g gpuType) any { return inCommunity(g) }),
		"minPodGpuCount":            always(1),

		"lowestPrice": field(lowestPrice),
		"clusterPrice": field(func(ctx context.Context, x *exchange, g gpuType, _ input) (any, error) {
			c, err := x.clusterEntry(ctx, translate.Text(g.entry, "id"))
			if err != nil || c == nil {
				return nil, err
			}
			return cloudPrice(g.entry, secure), nil
		}),
		"nodeGroupDatacenters": field(func(ctx context.Context, x *exchange, g gpuType, _ input) (any, error) {
			c, err := x.clusterEntry(ctx, translate.Text(g.entry, "id"))
			if err != nil {
				return nil, err
			}
			out := []any{}
			for _, centre := range translate.Items(c, "dataCenters") {
				out = append(out, &dataCenter{id: translate.Text(centre, "id"), name: translate.Text(centre, "name")})
			}
			return out, nil
		}),
	}
}

func manufacturer(s string) string {
	switch s {
	case "NVIDIA":
		return "Nvidia"
	case "AMD":
		return "AMD"
	}
	return "Unknown"
}

// gpuPool is a serverless pool with its GPU types.
type gpuPool struct {
	id    string
	types []string
}

func serverlessGPUPools(ctx context.Context, x *exchange, _ input) (any, error) {
	pools, err := x.pools(ctx)
	if err != nil {
		return nil, err
	}
	return translate.List(pools), nil
}

// pools returns the serverless GPU types grouped by pool, in catalog order.
func (x *exchange) pools(ctx context.Context) ([]gpuPool, error) {
	list, err := x.GPUs(ctx, translate.GPUQuery{Product: "SERVERLESS"})
	if err != nil {
		return nil, err
	}
	var pools []gpuPool
	for _, entry := range list {
		id := translate.Text(entry, "pool")
		if id == "" {
			continue
		}
		i := slices.IndexFunc(pools, func(p gpuPool) bool { return p.id == id })
		if i < 0 {
			i = len(pools)
			pools = append(pools, gpuPool{id: id})
		}
		pools[i].types = append(pools[i].types, translate.Text(entry, "id"))
	}
	return pools, nil
}

// CPU flavours.

// cpuFlavor is a CPU flavour as a value of the schema.
type cpuFlavor struct{ entry any }

func cpuFlavors(ctx context.Context, x *exchange, in input) (any, error) {
	list, err := x.CPUs(ctx, "POD", 0)
	if err != nil {
		return nil, err
	}
	id := in.object("input").text("id")
	out := []any{}
	for _, entry := range list {
		if id == "" || translate.Text(entry, "id") == id {
			out = append(out, cpuFlavor{entry})
		}
	}
	return out, nil
}

func cpuTypeFields() objectType {
	return objectType{
		"id":             get(func(f cpuFlavor) any { return translate.Text(f.entry, "id") }),
		"displayName":    get(func(f cpuFlavor) any { return translate.Text(f.entry, "name") }),
		"manufacturer":   always(""),
		"cores":          get(func(f cpuFlavor) any { return translate.Whole(f.entry, "vcpu", "max") }),
		"threadsPerCore": always(1),
		"groupId":        get(func(f cpuFlavor) any { return translate.Text(f.entry, "group") }),
	}
}

func cpuFlavorFields() objectType {
	return objectType{
		"id":               get(func(f cpuFlavor) any { return translate.Text(f.entry, "id") }),
		"displayName":      get(func(f cpuFlavor) any { return translate.Text(f.entry, "name") }),
		"groupId":          get(func(f cpuFlavor) any { return translate.Text(f.entry, "group") }),
		"groupName":        get(func(f cpuFlavor) any { return translate.Text(f.entry, "group") }),
		"minVcpu":          get(func(f cpuFlavor) any { return translate.Whole(f.entry, "vcpu", "min") }),
		"maxVcpu":          get(func(f cpuFlavor) any { return translate.Whole(f.entry, "vcpu", "max") }),
		"ramMultiplier":    get(func(f cpuFlavor) any { return number(f.entry, "ramGbPerVcpu") }),
		"vcpuBurstable":    always(false),
		"diskLimitPerVcpu": get(func(f cpuFlavor) any { return diskLimit(translate.Text(f.entry, "id")) }),
		"specifics":        field(specifics),
	}
}

// diskLimit returns the GB of disk per vCPU: 15 for the fifth generation, 10 for earlier ones.
func diskLimit(id string) int {
	if strings.HasPrefix(id, "cpu5") {
		return 15
	}
	return 10
}

type cpuSpecifics struct {
	entry any
	vcpus int64
	stock any
}

// specifics returns the price of a flavour for the vCPU count of an instance. Without an instance, it uses the smallest
// vCPU count.
func specifics(ctx context.Context, x *exchange, f cpuFlavor, in input) (any, error) {
	a := in.object("input")
	vcpus := translate.Whole(f.entry, "vcpu", "min")
	if id := a.text("instanceId"); id != "" {
		name, n, ok := splitInstance(id)
		if !ok {
			return nil, badInput("instanceId must be <flavour>-<vcpu>-<memory>")
		}
		if name == translate.Text(f.entry, "id") {
			vcpus = n
		}
	}
	s := cpuSpecifics{entry: f.entry, vcpus: vcpus}
	if !in.Selects("stockStatus") || vcpus != translate.PowerOfTwo(vcpus) || vcpus > translate.Whole(f.entry, "vcpu", "max") {
		return s, nil
	}
	list, err := x.CPUs(ctx, "POD", vcpus)
	if err != nil {
		return nil, err
	}
	entry := translate.ByID(list, translate.Text(f.entry, "id"))
	level := translate.Text(entry, "availability")
	if id := a.text("dataCenterId"); id != "" {
		level = levelAt(entry, id)
	}
	if level != "NONE" {
		s.stock = orNull(stockWord(level))
	}
	return s, nil
}
