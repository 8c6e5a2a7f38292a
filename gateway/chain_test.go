package gateway

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// Each name of the order has one supplier, and each supplier a name.
func TestStagesHaveOneSupplier(t *testing.T) {
	t.Parallel()
	all := func(change func(stages)) feature {
		m, order := make(stages), chainOrder()
		for part, names := range map[string][]string{"headers": order.Headers, "body": order.Body, "call": order.Call} {
			for _, name := range names {
				m[part+"/"+name] = filter.AssignIDs{}
			}
		}
		change(m)
		return feature{name: "all", stages: func(*compiled) stages { return m }}
	}
	unchanged := func(stages) {}
	other := feature{name: "other", stages: func(*compiled) stages { return stages{"call/evaluate policies": filter.AssignIDs{}} }}
	for want, features := range map[string][]feature{
		"": {{name: "nothing"}, all(unchanged)},
		"feature other supplies stage \"call/evaluate policies\", which another feature already supplies": {all(unchanged), other},
		"no feature supplies stage \"call/evaluate policies\"":                                            {all(func(m stages) { delete(m, "call/evaluate policies") })},
		"stage \"call/convene jury\" is not in the order of the chain":                                    {all(func(m stages) { m["call/convene jury"] = filter.AssignIDs{} })},
	} {
		chain := new(filter.Chain)
		c := &compiled{state: &state{pipeline: &filter.Pipeline{Chain: chain}}}
		err := arrange(features, c)
		if want == "" && (err != nil || len(chain.Call) != len(chainOrder().Call)) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v and %d stages, want %q", err, len(chain.Call), want)
		}
	}
}
