package platform

import (
	"net/http"
	"slices"
)

// volume is a network volume: storage in one data center that outlives what it
// is mounted into, and is paid for until it is deleted.
type volume struct {
	ID, Name   string
	Size       int64 // GB
	DataCenter string
	Tier       string
}

const (
	tierStandard = "STANDARD"
	tierHigh     = "HIGH_PERFORMANCE"

	minVolume = 10
	maxVolume = 4096
)

func (v *volume) append(b []byte) []byte {
	b = appendText(append(b, `{"id":`...), v.ID)
	b = appendText(append(b, `,"name":`...), v.Name)
	b = appendInt(append(b, `,"size":`...), v.Size)
	b = appendText(append(b, `,"dataCenter":`...), v.DataCenter)
	return append(appendText(append(b, `,"type":`...), v.Tier), '}')
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

func (x *exchange) listVolumes() (reply, error) {
	x.lock()
	defer x.unlock()
	return ok(appendList([]byte(`{"networkVolumes":`), x.acct.volumes.order, func(b []byte, v *volume) []byte { return v.append(b) })), nil
}

func (x *exchange) createVolume() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	var c checker
	v := &volume{}
	if f, isObject := c.object("$", body, "name", "size", "dataCenter", "type"); isObject {
		f.require("name", "size", "dataCenter")
		v.Name, _ = f.text("name", 1)
		v.Size, _ = f.integer("size", minVolume, maxVolume)
		v.DataCenter, _ = f.text("dataCenter", 1)
		v.Tier, _ = f.enum("type", tierStandard, tierHigh)
	}
	if err := c.err(); err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	if v.Tier, err = x.s.catalog.tier(v.DataCenter, v.Tier); err != nil {
		return reply{}, err
	}
	if err := x.canPay(v.rate().total()); err != nil {
		return reply{}, err
	}
	v.ID = x.s.newIDLocked(x.acct.volumes.has)
	x.acct.volumes.add(v.ID, v)
	x.acct.chargeLocked(meterVolume, v.ID, v.rate(), x.now)
	return reply{status: http.StatusCreated, body: v.append(nil)}, nil
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

func (x *exchange) ownVolumeLocked() (*volume, error) {
	if v := x.acct.volumes.get(x.params[0]); v != nil {
		return v, nil
	}
	return nil, notFound("network volume")
}

func (x *exchange) getVolume() (reply, error) {
	x.lock()
	defer x.unlock()
	v, err := x.ownVolumeLocked()
	if err != nil {
		return reply{}, err
	}
	return ok(v.append(nil)), nil
}

func (x *exchange) updateVolume() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	var c checker
	var name *string
	var size int64
	if f, isObject := c.object("$", body, "name", "size"); isObject {
		f.atLeastOne()
		name = f.textPtr("name", 1)
		size, _ = f.integer("size", minVolume, maxVolume)
	}
	if err := c.err(); err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	v, err := x.ownVolumeLocked()
	if err != nil {
		return reply{}, err
	}
	if size != 0 && size < v.Size {
		return reply{}, badRequest("a network volume cannot shrink")
	}
	grown := *v
	grown.Size = max(size, v.Size)
	if grown.Size > v.Size {
		if err := x.canPay(grown.rate().total()); err != nil {
			return reply{}, err
		}
	}
	set(&grown.Name, name)
	*v = grown
	x.acct.volumes.touch(v.ID)
	x.acct.chargeLocked(meterVolume, v.ID, v.rate(), x.now)
	return ok(v.append(nil)), nil
}

// deleteVolume releases the storage, unless something still mounts it.
func (x *exchange) deleteVolume() (reply, error) {
	x.lock()
	defer x.unlock()
	v, err := x.ownVolumeLocked()
	if err != nil {
		return reply{}, err
	}
	for _, p := range x.acct.pods.order {
		if m := p.Mounts.Network; m != nil && m.VolumeID == v.ID {
			return reply{}, badRequest("the network volume is in use by pod " + p.ID)
		}
	}
	for _, e := range x.acct.endpoints.order {
		if slices.Contains(e.Volumes, v.ID) {
			return reply{}, badRequest("the network volume is in use by endpoint " + e.ID)
		}
	}
	x.acct.volumes.remove(v.ID)
	x.acct.chargeLocked(meterVolume, v.ID, amounts{}, x.now)
	return noContent(), nil
}
