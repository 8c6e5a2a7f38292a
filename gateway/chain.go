package gateway

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// stages maps the names of stages, prefixed with their part ("call/evaluate policies"), to filters.
type stages map[string]filter.Filter

// arrange fills the chain with the stages of all features. It returns an error unless every name in the order is supplied by exactly one
// feature and every supplied stage is in the order.
func arrange(features []feature, c *compiled) error {
	all, faults := make(stages), []error(nil)
	for i := range features {
		if features[i].stages == nil {
			continue
		}
		for name, stage := range features[i].stages(c) {
			if all[name] != nil {
				faults = append(faults, fmt.Errorf("feature %s supplies the stage %s, which another feature supplies", features[i].name, name))
			}
			all[name] = stage
		}
	}
	part := func(part string, names []string) []filter.Filter {
		list := make([]filter.Filter, len(names))
		for i, name := range names {
			name = part + "." + name
			if list[i] = all[name]; list[i] == nil {
				faults = append(faults, fmt.Errorf("no feature supplies the stage %s", name))
			}
			delete(all, name)
		}
		return list
	}
	order := chainOrder()
	c.chain.Headers, c.chain.Body, c.chain.Call = part("Head", order.Head), part("Content", order.Content), part("Call", order.Call)
	for name := range all {
		faults = append(faults, fmt.Errorf("the order of the chain has no place for the stage %s", name))
	}
	return errors.Join(faults...)
}
