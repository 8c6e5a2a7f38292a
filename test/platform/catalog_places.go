package platform

import "slices"

// cpuQuery is what a caller wants to know of CPU flavors.
type cpuQuery struct {
	include bool
	vcpu    int
}

func (x *exchange) cpuQuery() (cpuQuery, error) {
	p := &params{q: x.query}
	q := cpuQuery{
		include: len(p.list("include", oneOf("AVAILABILITY"))) > 0,
		vcpu:    p.integer("vcpuCount", 2, 1<<20, 2),
	}
	if q.vcpu&(q.vcpu-1) != 0 {
		p.add("query.vcpuCount", "must be a power of two, but got %d", q.vcpu)
	}
	p.list("product", oneOf("POD", serverlessProduct))
	if err := p.err(); err != nil {
		return q, err
	}
	return q, p.tiedToInclude(q.include, []string{"vcpuCount"})
}

func cpuTypes() part[CPU, cpuQuery] {
	return part[CPU, cpuQuery]{
		noun: "CPU type", member: "cpus", query: (*exchange).cpuQuery,
		all:  func(c *catalog) []CPU { return c.CPUs },
		find: (*catalog).flavor,
		show: (*catalog).showCPUTypeLocked,
	}
}

func (c *catalog) showCPUTypeLocked(f *CPU, q cpuQuery) object {
	o := object{
		"id", f.ID, "name", f.Name, "group", f.Group, "vcpu",
		object{"min", f.MinVCPU, "max", f.MaxVCPU},
		"ramGbPerVcpu", f.RAMPerVCPU,
		"price",
		object{"securePerVcpu", f.Secure, "serverlessPerVcpu", f.Serverless},
	}
	if q.include {
		var places []place
		for _, id := range f.DataCenters {
			level := "NONE"
			if q.vcpu >= f.MinVCPU && q.vcpu <= f.MaxVCPU {
				level = c.stock[stockKey{f.ID, "", id}].level(q.vcpu)
			}
			places = append(places, place{dc: c.dcs[id], level: level})
		}
		o = withPlaces(o, places)
	}
	return o
}

// dcQuery is what a caller wants to know of data centers.
type dcQuery struct {
	gpus, cpus                     bool
	regions, volumeTypes, complies []string
	globalNetwork                  *bool
}

func (x *exchange) dcQuery() (dcQuery, error) {
	p := &params{q: x.query}
	include := p.list("include", oneOf("GPU_AVAILABILITY", "CPU_AVAILABILITY"))
	q := dcQuery{
		gpus: slices.Contains(include, "GPU_AVAILABILITY"),
		cpus: slices.Contains(include, "CPU_AVAILABILITY"),
		regions: p.list("regions", oneOf("NORTH_AMERICA", "SOUTH_AMERICA", "EUROPE", "ASIA", "MIDDLE_EAST",
			"AFRICA", "OCEANIA", "ANTARCTICA", "UNKNOWN")),
		volumeTypes: p.list("networkVolumeTypes", oneOf("STANDARD", "HIGH_PERFORMANCE")),
		complies: p.list("compliance", oneOf("GDPR", "ISO_IEC_27001", "ISO_14001", "PCI_DSS", "HITRUST", "SOC_1_TYPE_2",
			"SOC_2_TYPE_2", "SOC_3_TYPE_2", "ITAR", "FISMA_HIGH", "HIPAA", "RENEWABLE")),
		globalNetwork: p.flag("globalNetwork"),
	}
	return q, p.err()
}

// wants reports whether a data center passes every filter: any of the regions,
// all of the tiers, all of the certificates.
func (q dcQuery) wants(dc *DataCenter) bool {
	all := func(wanted, has []string) bool {
		return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(has, w) })
	}
	return (len(q.regions) == 0 || slices.Contains(q.regions, dc.Region)) &&
		all(q.volumeTypes, dc.VolumeTypes) && all(q.complies, dc.Compliance) &&
		(q.globalNetwork == nil || *q.globalNetwork == dc.GlobalNetwork)
}

func dataCenters() part[DataCenter, dcQuery] {
	return part[DataCenter, dcQuery]{
		noun: "data center", member: "dataCenters", query: (*exchange).dcQuery,
		all:   func(c *catalog) []DataCenter { return c.DataCenters },
		find:  func(c *catalog, id string) *DataCenter { return c.dcs[id] },
		wants: func(_ *catalog, dc *DataCenter, q dcQuery) bool { return q.wants(dc) },
		show:  (*catalog).showDataCenterLocked,
	}
}

func (c *catalog) showDataCenterLocked(dc *DataCenter, q dcQuery) object {
	o := object{
		"id", dc.ID, "name", dc.Name, "region", dc.Region, "globalNetwork", dc.GlobalNetwork,
		"networkVolumeTypes", dc.VolumeTypes, "compliance", dc.Compliance,
	}
	if q.gpus {
		o = withList(o, "gpuAvailability", c.gpusInLocked(dc.ID))
	}
	if q.cpus {
		o = withList(o, "cpuAvailability", c.cpusInLocked(dc.ID))
	}
	return o
}

func (c *catalog) gpusInLocked(dc string) (list []object) {
	for i := range c.GPUs {
		g := &c.GPUs[i]
		if s := c.stock[stockKey{g.ID, secureCloud, dc}]; s != nil {
			list = append(list, availability(g.ID, g.Name, s.level(1)))
		}
	}
	return list
}

func (c *catalog) cpusInLocked(dc string) (list []object) {
	for i := range c.CPUs {
		f := &c.CPUs[i]
		if s := c.stock[stockKey{f.ID, "", dc}]; s != nil {
			list = append(list, availability(f.ID, f.Name, s.level(f.MinVCPU)))
		}
	}
	return list
}
