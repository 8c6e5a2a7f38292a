package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// checkMembers reports references in an organisation's own Rego to input members that do not exist, and uses of resource members with
// the wrong type, according to the description of the platform's API. It runs OPA's type checker with a special schema of the
// input. That schema cannot combine null with another type, although comparisons with null are legitimate, so errors about null are
// ignored. Members that may be absent must still be read with object.get.
//
// Members of bodies may have any name, because members of job bodies do. modules must be compiled and are modified.
func (o OrgRego) checkMembers(org string, modules map[string]*ast.Module) error {
	if len(o.modules) == 0 {
		return nil
	}
	c := newCompiler(&library{schemas: described()}, o.taken)
	c.Compile(modules)
	var faults []error
	for _, e := range c.Errors {
		if e.Location == nil || o.modules[e.Location.File] == nil {
			continue
		}
		policy, _ := policyOfPackage(o.modules[e.Location.File])
		d, isRef := e.Details.(*ast.RefErrInvalidDetail)
		if !isRef {
			if !isMoot(e) {
				faults = append(faults, located(org, e, func(string) string { return policy }))
			}
			continue
		}
		var known []string
		for _, name := range d.OneOf {
			if s, ok := name.(ast.String); ok {
				known = append(known, string(s))
			}
		}
		have, ok := d.Ref[d.Pos].Value.(ast.String)
		if !ok || slices.Equal(known, slices.Sorted(maps.Keys(operation.AllBodies().Members))) {
			continue
		}
		message := fmt.Sprintf("%s: %s", strings.TrimPrefix(e.Message, "undefined ref: "), Unknown("member", string(have), known))
		faults = append(faults, faultAt(org, policy, e.Location, message))
	}
	return errors.Join(faults...)
}

// isMoot reports whether an error only states that a value is not null, or that an object lacks the members of another, such as {}.
func isMoot(e *ast.Error) bool {
	null := func(t types.Type) bool { return t != nil && types.Contains(t, types.Nl) }
	switch d := e.Details.(type) {
	case *ast.UnificationErrDetail:
		_, left := d.Left.(*types.Object)
		_, right := d.Right.(*types.Object)
		return null(d.Left) || null(d.Right) || left && right
	case *ast.ArgErrDetail:
		return slices.ContainsFunc(d.Have, null)
	}
	return true
}

// described is the schema of the input with the known shapes of bodies and resources. It is shared and must not be modified.
var described = sync.OnceValue(func() *ast.SchemaSet {
	schema := policyinput.Described(operation.AllBodies().Schema(), operation.States().Schema())
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schema)
	return set
})
