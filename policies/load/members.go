package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/record"
)

// members reports references of own Rego to members that nothing has: bodies and
// resources are as the platform's API describes them. OPA's type checker finds them
// with a schema of the input of its own, because null, which it cannot express beside
// an object, is compared with objects for good reasons: of what it finds, only such
// references count. What may be absent is still asked for with object.get.
//
// Members of a body itself may have any name, since those of jobs do. modules are
// compiled, and changed.
func (o Own) members(org string, modules map[string]*ast.Module) error {
	if len(o.modules) == 0 {
		return nil
	}
	c := newCompiler(&library{schemas: described()}, o.taken)
	c.Compile(modules)
	var faults []error
	for _, e := range c.Errors {
		d, isRef := e.Details.(*ast.RefErrInvalidDetail)
		if !isRef || e.Location == nil || o.modules[e.Location.File] == nil {
			continue
		}
		var known []string
		for _, name := range d.OneOf {
			if s, ok := name.(ast.String); ok {
				known = append(known, string(s))
			}
		}
		have, ok := d.Ref[d.Pos].Value.(ast.String)
		if !ok || slices.Equal(known, slices.Sorted(maps.Keys(operation.AnyBody().Members))) {
			continue
		}
		policy, _ := policyOfPackage(o.modules[e.Location.File])
		faults = append(faults, &Error{
			Org: org, Policy: policy, File: e.Location.File, Row: e.Location.Row, Col: e.Location.Col,
			Message: fmt.Sprintf("%s: %s", strings.TrimPrefix(e.Message, "undefined ref: "), Unknown("member", string(have), known)),
		})
	}
	return errors.Join(faults...)
}

// described is the schema of the input with what is known of bodies and resources.
func described() *ast.SchemaSet {
	schema := record.Described(operation.AnyBody().Schema(), operation.States().Schema())
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schema)
	return set
}
