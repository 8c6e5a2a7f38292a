package platform

import (
	"slices"
	"strings"
)

func gpuParameters() []string {
	return []string{"include", "product", "count", "cloud", "countryCodes", "cudaVersions", "minCudaVersion"}
}

// serverlessProduct is the product that types outside every pool are not
// offered for.
const serverlessProduct = "SERVERLESS"

// gpuQuery is what a caller wants to know of GPU types. A type is offered where
// it is for any of the products.
type gpuQuery struct {
	include   bool
	products  []string
	count     int
	cloud     string
	countries []string
	cuda      []string
	minCUDA   string
}

func (x *exchange) gpuQuery() (gpuQuery, error) {
	p := &params{q: x.query}
	q := gpuQuery{
		include:   len(p.list("include", oneOf("AVAILABILITY"))) > 0,
		products:  p.list("product", oneOf("POD", "CLUSTER", serverlessProduct)),
		count:     p.integer("count", 1, 1<<20, 1),
		cloud:     p.enum("cloud", secureCloud, communityCloud),
		countries: p.list("countryCodes", countryCode),
		cuda:      p.list("cudaVersions", cudaVersion),
	}
	if p.has("minCudaVersion") {
		q.minCUDA = p.q.Get("minCudaVersion")
		if !digits(q.minCUDA) && cudaVersion(q.minCUDA) != "" {
			p.add("query.minCudaVersion", "'%s' is not a version of the form <major> or <major>.<minor>", q.minCUDA)
		}
	}
	if err := p.err(); err != nil {
		return q, err
	}
	if q.cuda != nil && q.minCUDA != "" {
		return q, badRequest("cudaVersions and minCudaVersion exclude each other")
	}
	return q, p.tiedToInclude(q.include, gpuParameters()[2:])
}

// tiedToInclude refuses parameters that mean nothing without availability, and
// availability without the product it is asked for.
func (p *params) tiedToInclude(include bool, tied []string) error {
	if include && !p.has("product") {
		return badRequest("include=AVAILABILITY needs the product it is asked for")
	}
	for _, name := range append([]string{"product"}, tied...) {
		if !include && p.has(name) {
			return badRequest(name + " needs include=AVAILABILITY")
		}
	}
	return nil
}

func countryCode(s string) string {
	if len(s) == 2 && strings.ToUpper(s) == s && strings.ToLower(s) != s && s[0] >= 'A' && s[1] >= 'A' {
		return ""
	}
	return "'" + s + "' is not a country code of two capital letters"
}

func gpuTypes() part[GPU, gpuQuery] {
	return part[GPU, gpuQuery]{
		noun: "GPU type", member: "gpus", query: (*exchange).gpuQuery,
		all:  func(c *catalog) []GPU { return c.GPUs },
		find: func(c *catalog, id string) *GPU { return c.gpus[id] },
		wants: func(c *catalog, g *GPU, q gpuQuery) bool {
			return len(q.countries) == 0 || len(c.placesLocked(g, q)) > 0
		},
		show: (*catalog).showGPUTypeLocked,
	}
}

// place is one data center that offers a type, with how much of it is left.
type place struct {
	dc    *DataCenter
	cuda  string
	level string
}

// placesLocked lists where a type is offered to the query.
func (c *catalog) placesLocked(g *GPU, q gpuQuery) []place {
	if !q.include || g.Pool == "" && !slices.ContainsFunc(q.products, func(p string) bool { return p != serverlessProduct }) {
		return nil
	}
	var out []place
	for _, id := range g.DataCenters {
		dc := c.dcs[id]
		stock := c.stock[stockKey{g.ID, q.cloud, id}]
		if stock == nil || len(q.countries) > 0 && !slices.Contains(q.countries, dc.Country) {
			continue
		}
		level := "NONE"
		if q.count <= g.ceiling(q.cloud) {
			level = stock.level(q.count)
		}
		out = append(out, place{dc: dc, cuda: g.cudaAt(id), level: level})
	}
	return out
}

// best is the highest level among places.
func best(places []place) string {
	levels := []string{"NONE", "LOW", "MEDIUM", "HIGH"}
	top := 0
	for _, p := range places {
		top = max(top, slices.Index(levels, p.level))
	}
	return levels[top]
}

func (c *catalog) showGPUTypeLocked(g *GPU, q gpuQuery) object {
	maker := "NVIDIA"
	if g.AMD {
		maker = "AMD"
	}
	price := object{"secure", g.Price.Secure, "community", g.Price.Community}
	if g.Pool != "" {
		price = append(price, "serverless", g.Price.Serverless)
	}
	o := object{
		"id", g.ID, "name", g.Name, "pool", optional(g.Pool), "manufacturer", maker, "memory", g.Memory,
		"secure", g.Price.Secure > 0, "community", g.Price.Community > 0, "price", price,
		"maxCount",
		object{"secure", g.MaxSecure, "community", g.MaxCommunity},
	}
	if q.include {
		places := c.placesLocked(g, q)
		o = withList(withPlaces(o, places), "cudaVersions", cudaVersions(g, q, places))
	}
	return o
}

// withPlaces adds where there is room.
func withPlaces(o object, places []place) object {
	var list []object
	for _, p := range places {
		list = append(list, availability(p.dc.ID, p.dc.Name, p.level))
	}
	return withList(append(o, "availability", best(places)), "dataCenters", list)
}

// withList adds a list, which is left out when empty.
func withList(o object, name string, list []object) object {
	if len(list) == 0 {
		return o
	}
	return append(o, name, list)
}

func availability(id, name, level string) object {
	return object{"id", id, "name", name, "availability", level}
}

// cudaVersions are the versions the query lets through; a version is available when one of
// its hosts has room.
func cudaVersions(g *GPU, q gpuQuery, places []place) (list []object) {
	for _, version := range g.CUDA {
		if len(q.cuda) > 0 && !slices.Contains(q.cuda, version) ||
			q.minCUDA != "" && compareVersions(version, q.minCUDA) < 0 {
			continue
		}
		offered, free := false, false
		for _, p := range places {
			if p.cuda == version {
				offered, free = true, free || p.level != "NONE"
			}
		}
		if offered {
			list = append(list, object{"version", version, "available", free})
		}
	}
	return list
}
