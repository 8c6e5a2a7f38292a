package operator

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Coverage lists the rules for an operation of the v2 API or of the run interface. An operation without a required rule is never forwarded:
// the operation cannot be called, and the gateway does not start.
type Coverage struct {
	Operation, Method, Path string
	// Mutates is set if the operation changes something or incurs a cost.
	Mutates bool
	// Body names the check of the body: "schema", or "none" if a body is refused.
	Body string
	// State names the resource that policies evaluate: "body" (the body of the call), "merged" (the current resource with the changes in the
	// body), "as it is" (the current resource) or "none".
	State string
	// Price, Kind and Verb are copied from the operation's spec.
	Price, Kind, Verb string
	// Gaps lists the missing rules.
	Gaps []string
}

// CoverageOf returns the rules for each described operation, and a gap for each spec in [operation.All] without a description.
func CoverageOf(api []*schema.Operation) []Coverage { return compare(api, operation.All()) }

func compare(api []*schema.Operation, rows []operation.Spec) []Coverage {
	described := make(map[string]*schema.Operation, len(api))
	for _, op := range api {
		described[op.ID] = op
	}
	known := make(map[string]operation.Spec, len(rows))
	for _, row := range rows {
		known[row.ID] = row
	}
	var out []Coverage
	for _, op := range api {
		c := Coverage{Operation: op.ID, Method: op.Method, Path: op.Path, Mutates: op.Mutates}
		c.Body = "none"
		if op.HasBody {
			c.Body = "schema"
		}
		if row, ok := known[op.ID]; ok {
			c.row(op, row, described[row.ReadOperation])
		} else {
			c.gap("no spec in policies/operation")
		}
		out = append(out, c)
	}
	for _, row := range rows {
		if described[row.ID] == nil {
			out = append(out, Coverage{Operation: row.ID, Gaps: []string{"not described by the API"}})
		}
	}
	return out
}

func (c *Coverage) gap(what string) { c.Gaps = append(c.Gaps, what) }

// row compares an operation with its spec. read is the operation that reads the resource of op, or nil.
func (c *Coverage) row(op *schema.Operation, row operation.Spec, read *schema.Operation) {
	c.Price, c.Kind, c.Verb = string(row.Price), string(row.Kind), string(row.Verb)
	if op.Mutates && !row.Verb.Changes() {
		c.gap("changes something, but its spec has the verb read")
	}
	if (row.PagedMember != "") != (op.MaxPage() > 0) {
		c.gap("its spec and its parameters disagree about paging")
	}
	c.State = "none"
	switch {
	case row.MergesState() && row.Verb == operation.VerbUpdate:
		c.State = "merged"
	case row.MergesState():
		c.State = "as it is"
	case row.Verb.HasResultState():
		c.State = "body"
	}
	if row.ReadOperation != "" && (read == nil || read.Mutates || !strings.HasPrefix(op.Path+"/", read.Path+"/")) {
		c.gap("no operation reads its resource")
	}
	if row.Verb == operation.VerbUpdate {
		_, err := nextstate.Update(op.ID, map[string]any{}, map[string]any{}, nil)
		if _, merged := errors.AsType[*nextstate.Fault](err); err != nil && !merged {
			c.gap("no rule computes its resulting state")
		}
	}
}

// Check returns a joined error with one error for each rule that an operation of the API lacks; see [Coverage].
func Check(api []*schema.Operation) error {
	var errs []error
	for _, c := range CoverageOf(api) {
		for _, gap := range c.Gaps {
			errs = append(errs, fmt.Errorf("operation %s: %s", c.Operation, gap))
		}
	}
	return errors.Join(errs...)
}
