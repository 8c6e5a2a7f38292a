package catalog

import (
	"slices"
	"time"
)

// charged is an hourly price of one GPU or vCPU that the platform charged for a new pod and that exceeds its price list.
type charged struct {
	// id is the ID of a GPU type or, if cloud is "", of a CPU flavour.
	id, cloud    string
	unit, listed Money
	at           time.Time
}

// ObserveCharge compares the price in the platform's record of a newly created pod with the price list. If the price in the record is
// higher, ObserveCharge raises the price in the list immediately and makes Run read the list again, at most once in [Config.Retry]. The
// raised price applies until the list shows another price than before, or until [Config.Refresh] has passed. If prices were negotiated, the
// list is read again but no price is raised, because the platform's record does not reflect negotiated prices.
func (c *Catalog) ObserveCharge(org string, pod map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.orgs[org]
	if r == nil || r.last == nil {
		return
	}
	x, above := r.last.ListPrices().above(pod)
	if !above {
		return
	}
	x.at = c.deps.Now()
	r.charged = x.at
	if r.last.listed == nil {
		r.raised = slices.DeleteFunc(r.raised, func(o charged) bool { return o.id == x.id && o.cloud == x.cloud })
		r.raised = append(r.raised, x)
		r.last = r.last.raise(x)
	}
	select {
	case c.stale <- struct{}{}:
	default: // Run is already due to look
	}
}

// raise reapplies the raised prices that the new list does not supersede.
func (r *record) raise(s *Snapshot, now time.Time, longest time.Duration) *Snapshot {
	r.raised = slices.DeleteFunc(r.raised, func(x charged) bool {
		listed, known := s.unit(x.id, x.cloud)
		return s.listed != nil || !known || listed != x.listed || now.Sub(x.at) >= longest
	})
	for _, x := range r.raised {
		s = s.raise(x)
	}
	return s
}

// above returns the hourly price of a pod's GPU or vCPU, and reports whether it exceeds the list price by more than rounding.
func (s *Snapshot) above(pod map[string]any) (x charged, above bool) {
	listed := s.pod(pod)
	hourly, err := moneyOf(pod["cost"])
	if err != nil || !listed.Known || PodStopped(pod) {
		return x, false
	}
	units := listed.GPUs
	if gpu, ok := pod["gpu"].(map[string]any); ok {
		x.id, _ = gpu["id"].(string)
		x.cloud, _ = stringOr(pod["cloud"], "SECURE")
	} else if cpu, ok := pod["cpu"].(map[string]any); ok {
		x.id, _ = cpu["id"].(string)
		vcpus, _ := countOr(cpu["vcpuCount"], 0)
		units = atLeastNamed(vcpus, x.id)
	}
	if units == 0 || hourly <= listed.Hourly+Money(units) {
		return x, false
	}
	x.unit = (hourly + Money(units) - 1) / Money(units)
	x.listed, above = s.unit(x.id, x.cloud)
	return x, above
}

// unit returns the list price of one GPU of a type in a cloud or, if cloud is "", of one vCPU of a flavour.
func (s *Snapshot) unit(id, cloud string) (price Money, known bool) {
	if cloud == "" {
		c, ok := s.CPU(id)
		return c.Secure.PerHour, ok && c.Secure.Known
	}
	price, reason := s.gpuPrice(id, cloud)
	return price, reason == ""
}

// raise returns a copy of the list in which the price of x is at least the charged price.
func (s *Snapshot) raise(x charged) *Snapshot {
	l := Lists{GPUs: slices.Clone(s.gpus), CPUs: slices.Clone(s.cpus), Tiers: s.tiers}
	higher := func(p *Price) { p.PerHour = max(p.PerHour, x.unit) }
	for i := range l.GPUs {
		switch g := &l.GPUs[i]; {
		case g.ID != x.id:
		case x.cloud == "COMMUNITY":
			higher(&g.Community.Price)
		case x.cloud == "SECURE":
			higher(&g.Secure.Price)
		}
	}
	flavour, _ := sizeOf(x.id)
	for i := range l.CPUs {
		if c := &l.CPUs[i]; x.cloud == "" && (c.ID == x.id || c.ID == flavour) {
			higher(&c.Secure)
		}
	}
	return NewSnapshot(l, s.rates, s.fetched)
}
