package catalog

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Prices holds the prices that an organisation has negotiated with the platform, where they differ from the price list. The zero Prices
// changes nothing.
type Prices struct {
	Discount int64            `yaml:"discount" doc:"discount on list prices for compute" unit:"percent"`
	GPUs     map[string]Money `yaml:"gpus" doc:"hourly price per GPU by GPU type ID, for pods in both clouds and serverless workers, in place of the list price and without the discount. 0 means free" unit:"USD"`
	CPUs     map[string]Money `yaml:"cpus" doc:"hourly price per vCPU by CPU flavour ID, with the same rules as gpus" unit:"USD"`
	Runs     RunPrices        `yaml:"runs" doc:"prices of runs by public model name or endpoint ID, in place of the platform's published prices in budgets for accrued cost and the policy run_cost. 0 means free"`
}

// Validate checks p and joins the errors it finds, each with its path.
func (p Prices) Validate() error {
	var errs fault.Found
	errs.If(p.Discount < 0 || p.Discount > 99, "discount", "must be between 0 and 99, got %d", p.Discount)
	for name, list := range map[string]map[string]Money{"gpus": p.GPUs, "cpus": p.CPUs} {
		for id, price := range list {
			errs.If(price < 0, name+"."+id, "must not be negative")
		}
	}
	for id, run := range p.Runs {
		errs = append(errs, fault.At("runs."+id, run.Validate()))
	}
	return errors.Join(errs...)
}

// Equal reports whether p and o contain the same prices.
func (p Prices) Equal(o Prices) bool {
	return p.Discount == o.Discount && maps.Equal(p.GPUs, o.GPUs) && maps.Equal(p.CPUs, o.CPUs) &&
		maps.EqualFunc(p.Runs, o.Runs, func(a, b RunPrice) bool { return reflect.DeepEqual(a, b) })
}

// Apply returns l with the negotiated prices applied.
func (p Prices) Apply(l Lists) Lists {
	if p.Equal(Prices{Runs: p.Runs}) {
		return l // the price list has no prices of runs
	}
	l.ListPrices = &Lists{GPUs: slices.Clone(l.GPUs), CPUs: slices.Clone(l.CPUs), Tiers: l.Tiers}
	listed := make(map[string]bool)
	for i := range l.GPUs {
		g := &l.GPUs[i]
		listed[g.ID] = true
		agreed, ok := p.GPUs[g.ID]
		g.Secure.Price, g.Community.Price, g.Serverless = p.of(g.Secure.Price, agreed, ok), p.of(g.Community.Price, agreed, ok),
			p.of(g.Serverless, agreed, ok)
	}
	for id, agreed := range p.GPUs {
		if price := (Price{Known: true, PerHour: agreed}); !listed[id] {
			l.GPUs = append(l.GPUs, GPU{
				ID: id, Name: id, Secure: Offer{Offered: true, Price: price},
				Community: Offer{Offered: true, Price: price}, Serverless: price,
			})
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

// of returns the negotiated price if isAgreed is set, and otherwise the list price less the discount, rounded up.
func (p Prices) of(listed Price, agreed Money, isAgreed bool) Price {
	if isAgreed {
		return Price{Known: true, PerHour: agreed}
	}
	listed.PerHour -= listed.PerHour * Money(p.Discount) / 100
	return listed
}
