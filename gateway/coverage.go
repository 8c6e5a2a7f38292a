package gateway

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/effective"
)

// Coverage says what holds an operation of the v2 API. Nothing is passed by
// default: an operation that something is missing for cannot be called, and a
// gateway with one does not start.
type Coverage struct {
	Operation, Method, Path string
	// Mutates is true for what changes or costs something.
	Mutates bool
	// Body is what the body is held against: "schema", or "none" where a body is
	// refused.
	Body string
	// State is the state policies judge: "body", "merged" with the object as it
	// is, "as it is", or "none".
	State string
	// Price is the pricing rule, Kind and Verb the policies' classification.
	Price, Kind, Verb string
	// Gaps lists what is missing.
	Gaps []string
}

// CoverageOf tells what holds each of the API's operations.
func CoverageOf(operations []*schema.Operation) []Coverage {
	reads := filter.ReadsOf(operations)
	var out []Coverage
	for _, op := range operations {
		c := Coverage{Operation: op.ID, Method: op.Method, Path: op.Path, Mutates: op.Mutates}
		c.body(op)
		if rule, ok := catalog.RuleOf(op.ID); ok {
			c.Price = string(rule)
		} else {
			c.gap("no price rule")
		}
		kind, verb, ok := policies.Operation(op.ID)
		c.Kind, c.Verb = string(kind), string(verb)
		switch {
		case !ok:
			c.gap("no policy can judge it")
		case op.Mutates && (verb == policies.VerbRead || verb == policies.VerbLogs):
			c.gap("it changes something, and policies take it for a read")
		}
		c.state(op, verb, reads[op.ID] != nil)
		out = append(out, c)
	}
	return out
}

func (c *Coverage) gap(what string) { c.Gaps = append(c.Gaps, what) }

// body looks whether what is no object at all is refused: a schema that takes
// it takes anything.
func (c *Coverage) body(op *schema.Operation) {
	c.Body = "none"
	if op.HasBody {
		c.Body = "schema"
	}
	if len(op.ValidateBody("no object")) == 0 {
		c.gap("its schema takes any body")
	}
}

// state finds what a call is judged on, and whether that can be had.
func (c *Coverage) state(op *schema.Operation, verb policies.Verb, readable bool) {
	needs := effective.NeedsOf(op.ID, map[string]any{})
	c.State = "none"
	switch {
	case needs.Current && verb == policies.VerbUpdate:
		c.State = "merged"
	case needs.Current:
		c.State = "as it is"
	case verb.Settles():
		c.State = "body"
	}
	if needs.Current && !readable {
		c.gap("no operation reads the object it changes")
	}
	if verb == policies.VerbUpdate {
		_, err := effective.Update(op.ID, map[string]any{}, map[string]any{}, nil)
		if _, merged := errors.AsType[*effective.Fault](err); err != nil && !merged {
			c.gap("no rule says what it leads to")
		}
	}
}

// covered is an error for every operation with a gap.
func covered(operations []*schema.Operation) error {
	var errs []error
	for _, c := range CoverageOf(operations) {
		for _, gap := range c.Gaps {
			errs = append(errs, fmt.Errorf("operation %s: %s", c.Operation, gap))
		}
	}
	return errors.Join(errs...)
}
