package catalog

import (
	"cmp"
	"fmt"
	"strconv"
)

func (s *Snapshot) volume(after map[string]any) Cost {
	size, ok := countOr(after["size"], 0)
	if !ok {
		return unknown("size is not a positive whole number")
	}
	kind, ok := stringOr(after["type"], "")
	if !ok {
		return unknown("type is not a string")
	}
	if s == nil {
		return unknown("the storage rates are unavailable")
	}
	kind = cmp.Or(kind, s.tiers[text(after["dataCenter"])])
	monthly, basis, ok := s.rates.volume(kind, size)
	if !ok {
		return unknown("rate for network volumes of type %q is not configured", kind)
	}
	return Cost{Known: true, Hourly: perHour(monthly), Basis: basis}
}

// perHour returns the hourly part of a monthly amount, rounded to the nearest, so that the sum over a month and many resources
// matches the bill.
func perHour(monthly Money) Money { return (monthly + hoursPerMonth/2) / hoursPerMonth }

// Monthly converts an hourly amount into an amount per month of 730 hours.
func Monthly(hourly Money) Money { return hourly * hoursPerMonth }

// disks holds the sizes in GB of the disks on a machine's host: the container disk and the persistent mount.
type disks struct{ container, persistent int64 }

// disksOf reads the disk sizes. A missing container disk has the default size, and a missing persistent mount has the size 0.
func (s *Snapshot) disksOf(after map[string]any) (d disks, reason string) {
	var ok bool
	if d.container, ok = nonNegativeOr(after["disk"], s.rates.DefaultDisk); !ok {
		return d, "disk is not a whole number"
	}
	if after["mounts"] == nil {
		return d, ""
	}
	mounts, ok := after["mounts"].(map[string]any)
	if !ok {
		return d, "mounts is not an object"
	}
	if mounts["persistent"] == nil {
		return d, ""
	}
	mount, ok := mounts["persistent"].(map[string]any)
	if !ok {
		return d, "mounts.persistent is not an object"
	}
	if d.persistent, ok = countOr(mount["size"], 0); !ok {
		return d, "mounts.persistent.size is not a positive whole number"
	}
	return d, ""
}

// withDisks adds the cost of the disks of running machines to a price. The price per GPU does not change.
func (s *Snapshot) withDisks(c Cost, after map[string]any, machines int64) Cost {
	if !c.Known {
		return c
	}
	d, reason := s.disksOf(after)
	if reason != "" {
		return unknown("%s", reason)
	}
	for _, part := range []struct {
		what string
		size int64
		rate Money
	}{{"disk", d.container, s.rates.Container}, {"persistent storage", d.persistent, s.rates.Persistent}} {
		if part.size == 0 || part.rate == 0 {
			continue
		}
		one, ok1 := part.rate.times(part.size)
		monthly, ok2 := one.times(machines)
		c.Hourly += perHour(monthly)
		if !ok1 || !ok2 || c.Hourly > maxMoney {
			return unknown("the price is out of range: %d x %d GB of %s", machines, part.size, part.what)
		}
		c.Basis += ", " + strconv.FormatInt(machines, 10) + " x " + strconv.FormatInt(part.size, 10) + " GB of " + part.what + " at " +
			part.rate.String() + " per GB and month"
	}
	return c
}

// orStopped returns the price of a pod that may be stopped at any time. The rate of its persistent storage is higher then, so a
// stopped pod can cost more than a running one.
func (s *Snapshot) orStopped(c Cost, after map[string]any) Cost {
	d, reason := s.disksOf(after)
	if !c.Known || reason != "" {
		return c
	}
	monthly, ok := s.rates.PersistentStopped.times(d.persistent)
	if !ok {
		return unknown("the price is out of range: %d GB of persistent storage", d.persistent)
	}
	if stopped := perHour(monthly); stopped > c.Hourly {
		c.Hourly = stopped
		c.Basis = fmt.Sprintf("when stopped, %d GB of persistent storage at %s per GB and month", d.persistent, s.rates.PersistentStopped)
	}
	return c
}
