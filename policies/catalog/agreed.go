package catalog

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Prices are what an organisation has agreed with the platform, where that is not
// its list. The zero Prices change nothing.
type Prices struct {
	Discount int64            `yaml:"discount" doc:"what compute costs less than on the platform's list" unit:"percent"`
	GPUs     map[string]Money `yaml:"gpus" doc:"price per GPU and hour by id of the type, in both clouds and of serverless workers, instead of the list's and without the discount; of types, too, that have no price there. 0 is free" unit:"USD"`
	CPUs     map[string]Money `yaml:"cpus" doc:"the same of CPU flavours, per vCPU and hour" unit:"USD"`
	Runs     RunPrices        `yaml:"runs" doc:"costs of runs, by name of the public model or id of the endpoint, instead of the platform's published ones: reserved against budgets for accrued cost, and judged by run_cost. A price of 0 means free"`
}

// Validate reports every fault, each with its path below the section.
func (p Prices) Validate() error {
	var errs fault.Found
	errs.If(p.Discount < 0 || p.Discount > 99, "discount", "must be from 0 to 99, got %d", p.Discount)
	for name, list := range map[string]map[string]Money{"gpus": p.GPUs, "cpus": p.CPUs} {
		for id, price := range list {
			errs.If(price < 0, name+"."+id, "must not be negative")
		}
	}
	for id, run := range p.Runs {
		if err := run.Validate(); err != nil {
			errs = append(errs, fault.At("runs."+id, err))
		}
	}
	return errors.Join(errs...)
}

// Equal reports whether two agreements are the same.
func (p Prices) Equal(o Prices) bool {
	return p.Discount == o.Discount && maps.Equal(p.GPUs, o.GPUs) && maps.Equal(p.CPUs, o.CPUs) && maps.EqualFunc(p.Runs, o.Runs, func(a, b RunPrice) bool { return reflect.DeepEqual(a, b) })
}

// Apply puts the agreed prices into a price list.
func (p Prices) Apply(l Lists) Lists {
	if p.Equal(Prices{Runs: p.Runs}) {
		return l // runs are not on the list
	}
	l.ListPrices = &Lists{GPUs: slices.Clone(l.GPUs), CPUs: slices.Clone(l.CPUs), Tiers: l.Tiers}
	listed := make(map[string]bool)
	for i := range l.GPUs {
		g := &l.GPUs[i]
		listed[g.ID] = true
		agreed, ok := p.GPUs[g.ID]
		g.Secure.Price, g.Community.Price, g.Serverless = p.of(g.Secure.Price, agreed, ok), p.of(g.Community.Price, agreed, ok), p.of(g.Serverless, agreed, ok)
	}
	for id, agreed := range p.GPUs {
		if price := (Price{Known: true, PerHour: agreed}); !listed[id] {
			l.GPUs = append(l.GPUs, GPU{ID: id, Name: id, Secure: Offer{Offered: true, Price: price}, Community: Offer{Offered: true, Price: price}, Serverless: price})
		}
	}
	for i := range l.CPUs {
		c := &l.CPUs[i]
		flavour, _ := sizeOf(c.ID)
		agreed, own := p.CPUs[c.ID]
		other, ok := p.CPUs[flavour]
		agreed = max(agreed, other)
		c.Secure, c.Serverless = p.of(c.Secure, agreed, own || ok), p.of(c.Serverless, agreed, own || ok)
	}
	return l
}

// of is a price of the list as it was agreed, if it was, or with the discount, rounded up.
func (p Prices) of(listed Price, agreed Money, isAgreed bool) Price {
	if isAgreed {
		return Price{Known: true, PerHour: agreed}
	}
	listed.PerHour -= listed.PerHour * Money(p.Discount) / 100
	return listed
}
