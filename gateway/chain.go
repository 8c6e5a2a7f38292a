package gateway

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// stages maps stage names to filters. A name includes the part of the chain, for example "call/evaluate policies".
type stages map[string]filter.Filter

// arrange fills the chain with the stages of all features, in the order given by chainOrder. It returns an error if a stage in chainOrder
// is not supplied by exactly one feature, or if a feature supplies a stage that chainOrder does not contain.
func arrange(features []feature, c *compiled) error {
	all, faults := make(stages), []error(nil)
	for i := range features {
		if features[i].stages == nil {
			continue
		}
		for name, stage := range features[i].stages(c) {
			if all[name] != nil {
				faults = append(faults, fmt.Errorf("feature %s supplies stage %q, which another feature already supplies", features[i].name, name))
			}
			all[name] = stage
		}
	}
	part := func(part string, names []string) []filter.Filter {
		list := make([]filter.Filter, len(names))
		for i, name := range names {
			name = part + "/" + name
			if list[i] = all[name]; list[i] == nil {
				faults = append(faults, fmt.Errorf("no feature supplies stage %q", name))
			}
			delete(all, name)
		}
		return list
	}
	order := chainOrder()
	chain := c.pipeline.Chain
	chain.Headers, chain.Body, chain.Call = part("headers", order.Headers), part("body", order.Body), part("call", order.Call)
	for name := range all {
		faults = append(faults, fmt.Errorf("stage %q is not in the order of the chain", name))
	}
	return errors.Join(faults...)
}
