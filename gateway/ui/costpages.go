package ui

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// costPages returns the pages of the group Cost.
func costPages() []*page {
	return []*page{
		{name: "cost", title: "Cost explorer", asks: history, group: groupCost, icon: "chart", period: last30Days, load: spend},
		{name: "resources", title: "Resources", asks: ledger, group: groupCost, icon: "server", load: resources},
	}
}

// withoutKeys leaves keys out: an organisation can have thousands. A key whose budget is nearly used up is on the overview.
func withoutKeys[T any](list []T, scope func(*T) string) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return strings.HasPrefix(scope(&x), "key ") })
}

// resourceData is the data of the page of resources.
type resourceData struct {
	Ledger part[money.Ledger]
	Shown  excerpt[money.Resource]
	Holds  excerpt[money.Hold]
	Idle   part[money.IdleList]
	idle   map[string]money.IdleResource
}

// IdleOf returns the details of an idle resource, with an empty ID for a resource that works.
func (d resourceData) IdleOf(id string) money.IdleResource { return d.idle[id] }

func resources(v *visit) (any, int, string) {
	d := resourceData{idle: map[string]money.IdleResource{}}
	together(
		func() { d.Ledger = ask[money.Ledger](v, ledger, v.query(ledger)) },
		func() { d.Idle = ask[money.IdleList](v, idle, nil) },
	)
	for _, r := range d.Idle.Is.Resources {
		d.idle[r.ID] = r
	}
	d.Shown, d.Holds = cut(v, d.Ledger.Is.Resources), cut(v, d.Ledger.Is.Holds)
	return d, d.Ledger.Status, d.Ledger.Fault
}
