package platform

import "slices"

// volume is a network volume: storage in one data center that outlives what it
// is mounted into, and is paid for until it is deleted.
type volume struct {
	ID         string
	Name       string `body:"name" need:"yes" min:"1"`
	Size       int64  `body:"size" need:"yes" min:"10" max:"4096"` // GB
	DataCenter string `body:"dataCenter" need:"yes" min:"1"`
	Tier       string `body:"type" enum:"STANDARD HIGH_PERFORMANCE"`
}

const tierHigh = "HIGH_PERFORMANCE"

func (x *exchange) showVolume(v *volume) object {
	return object{"id", v.ID, "name", v.Name, "size", v.Size, "dataCenter", v.DataCenter, "type", v.Tier}
}

// rate is what the volume costs per hour: the STANDARD tier is cheaper from
// the second terabyte on.
func (v *volume) rate() amounts {
	const firstTB, beyond, high = 0.07 / hoursPerMonth, 0.05 / hoursPerMonth, 0.14 / hoursPerMonth
	var r amounts
	if v.Tier == tierHigh {
		r[volumeHighAmount] = float64(v.Size) * high
		return r
	}
	r[volumeStandardAmount] = float64(min(v.Size, 1000))*firstTB + float64(max(v.Size-1000, 0))*beyond
	return r
}

func volumes() resource[volume] {
	return resource[volume]{
		one: "NetworkVolume", many: "NetworkVolumes", path: "/v2/network-volumes", member: "networkVolumes", noun: "network volume",
		table:  func(a *account) *table[volume] { return &a.volumes },
		show:   (*exchange).showVolume,
		id:     func(v *volume) *string { return &v.ID },
		create: writes((*exchange).makeVolumeLocked),
		update: writes((*exchange).changeVolumeLocked),
		remove: (*exchange).removeVolumeLocked,
	}
}

func (x *exchange) makeVolumeLocked(v, want *volume) (then func(), err error) {
	*v = *want
	if v.Tier, err = x.s.catalog.tier(v.DataCenter, v.Tier); err != nil {
		return nil, err
	}
	return func() { x.acct.chargeLocked(meterVolume, v.ID, v.rate(), x.now) }, x.canPay(v.rate().total())
}

// tier checks that a data center offers a tier; an empty one is its primary.
func (c *catalog) tier(dataCenter, tier string) (string, error) {
	dc := c.dcs[dataCenter]
	if dc == nil {
		return "", badRequest("no data center is called '" + dataCenter + "'")
	}
	for _, offered := range dc.VolumeTypes {
		if tier == "" || tier == offered {
			return offered, nil
		}
	}
	return "", badRequest("data center " + dataCenter + " does not offer such network volumes")
}

// volumeChange is what a change names; a size of 0 is none.
type volumeChange struct {
	Name *string `body:"name" min:"1"`
	Size int64   `body:"size" min:"10" max:"4096"`
}

func (*volumeChange) check(f fields) { f.atLeastOne() }

func (x *exchange) changeVolumeLocked(v *volume, want *volumeChange) (func(), error) {
	if want.Size != 0 && want.Size < v.Size {
		return nil, badRequest("a network volume cannot shrink")
	}
	grown := *v
	grown.Size = max(want.Size, v.Size)
	if grown.Size > v.Size {
		if err := x.canPay(grown.rate().total()); err != nil {
			return nil, err
		}
	}
	set(&grown.Name, want.Name)
	*v = grown
	x.acct.chargeLocked(meterVolume, v.ID, v.rate(), x.now)
	return nil, nil
}

// removeVolumeLocked releases the storage, unless something still mounts it.
func (x *exchange) removeVolumeLocked(v *volume) error {
	for _, p := range x.acct.pods.order {
		if m := p.Mounts.Network; m != nil && m.VolumeID == v.ID {
			return badRequest("the network volume is in use by pod " + p.ID)
		}
	}
	for _, e := range x.acct.endpoints.order {
		if slices.Contains(e.Volumes, v.ID) {
			return badRequest("the network volume is in use by endpoint " + e.ID)
		}
	}
	x.acct.volumes.remove(v.ID)
	x.acct.chargeLocked(meterVolume, v.ID, amounts{}, x.now)
	return nil
}
