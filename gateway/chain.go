package gateway

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// stages are filters by the names of their stages, which have a part: Call.Judge.
type stages map[string]filter.Filter

// arrange fills the chain of a configuration with the stages that features supply. Each name of the order must have one supplier, and each stage
// a place in the order.
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
