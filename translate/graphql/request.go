package graphql

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/tollgate-dev/tollgate/translate"
)

// operation is a request made ready to execute.
type operation struct {
	name  string
	kind  ast.Operation
	roots []*node
	// creates tells that a pod or cluster may be made, which takes longer.
	creates bool
	// public tells that no credential is needed.
	public bool
}

// payload is the decoded request body.
type payload struct {
	query     string
	operation string
	variables map[string]any
}

func readPayload(in *translate.Incoming) (p payload, f *fault) {
	if doc, ok := in.Body.(string); ok && rawDocument(in.Header) {
		return payload{query: doc}, nil
	}
	m, ok := in.Body.(map[string]any)
	switch _, batch := in.Body.([]any); {
	case batch:
		return p, badInput("batched requests are not available, send one request at a time")
	case !ok:
		return p, badInput(`the request body must be a JSON object with the member "query"`)
	}
	if p.query, ok = m["query"].(string); !ok || p.query == "" {
		return p, badInput(`the member "query" must be a non-empty string`)
	}
	if v, given := m["operationName"]; given && v != nil {
		if p.operation, ok = v.(string); !ok {
			return p, badInput(`the member "operationName" must be a string`)
		}
	}
	if v, given := m["variables"]; given && v != nil {
		if p.variables, ok = v.(map[string]any); !ok {
			return p, badInput(`the member "variables" must be an object`)
		}
	}
	return p, nil
}

// prepare turns a request into an operation, or tells what is wrong with it.
func (a *API) prepare(in *translate.Incoming) (*operation, []*fault) {
	p, f := readPayload(in)
	if f != nil {
		return nil, []*fault{f}
	}
	doc, valid, faults := a.document(p.query)
	if faults != nil {
		return nil, faults
	}
	def, f := choose(doc, p.operation)
	if f != nil {
		return nil, []*fault{f}
	}
	if op := unavailable(doc, def); op != nil {
		return op, nil
	}
	if f := a.admit(doc, def); f != nil {
		return nil, []*fault{f}
	}
	if !valid {
		if faults := a.validate(doc); len(faults) > 0 {
			return nil, faults
		}
		a.keep(p.query, doc)
	}
	op, f := a.plan(doc, def, p.variables)
	if f != nil {
		return nil, []*fault{f}
	}
	return op, nil
}

// What is kept of documents that were found valid: pollers send the same text
// every few seconds.
const (
	keptDocuments = 256
	keptLength    = 8 << 10
)

// document parses a text, or finds it among the valid ones.
func (a *API) document(text string) (doc *ast.QueryDocument, valid bool, faults []*fault) {
	if doc, ok := a.valid.Get(text); ok {
		return doc, true, nil
	}
	doc, faults = parse(text, a.cfg.Limits)
	return doc, false, faults
}

// keep remembers a valid document. Only queries are kept: mutations carry
// inlined passwords and environments, which must not outlive their request.
func (a *API) keep(text string, doc *ast.QueryDocument) {
	if len(text) > keptLength {
		return
	}
	for _, op := range doc.Operations {
		if op.Operation != ast.Query {
			return
		}
	}
	a.valid.Add(text, doc)
}

// admit refuses what no document may do, before it is validated.
func (a *API) admit(doc *ast.QueryDocument, def *ast.OperationDefinition) (f *fault) {
	if def.Operation == ast.Subscription {
		return badValidation("subscriptions are not available")
	}
	if a.cfg.Introspection {
		return nil
	}
	rootFields(doc, def.SelectionSet, func(s *ast.Field) {
		if s.Name == "__schema" || s.Name == "__type" {
			f = at(badValidation(textNoIntrospect), s.Position)
		}
	})
	return f
}

func (a *API) plan(doc *ast.QueryDocument, def *ast.OperationDefinition, variables map[string]any) (*operation, *fault) {
	of := a.schema.Query
	if def.Operation == ast.Mutation {
		of = a.schema.Mutation
	}
	p := &planner{
		schema: a.schema, types: a.types, doc: doc, limits: a.cfg.Limits,
		coerce: coercer{
			schema: a.schema, operation: def, variables: variables, words: a.words, most: a.cfg.Limits.Values,
		},
	}
	for _, d := range def.Directives {
		return nil, at(badValidation(`Directive "@`+clip(d.Name)+`" may not be used here.`), d.Position)
	}
	roots, f := p.selection(of, []ast.SelectionSet{def.SelectionSet}, 1, a.cfg.Limits.Depth)
	if f != nil {
		return nil, f
	}
	op := &operation{name: def.Name, kind: def.Operation, roots: roots, public: true}
	return op, a.classify(op)
}

// classify notes what an operation needs and bounds its mutations.
func (a *API) classify(op *operation) *fault {
	mutations, paid := 0, 0
	for _, n := range op.roots {
		op.public = op.public && public(n.name)
		op.creates = op.creates || creates(n.name)
		if op.kind == ast.Mutation && n.name != "__typename" {
			mutations++
			if pays(n.name) {
				paid++
			}
		}
	}
	switch {
	case paid > 1:
		return limitFault("paid_mutations", 1, "root mutation that can cost money")
	case mutations > a.cfg.Limits.RootMutations:
		return limitFault("root_mutations", a.cfg.Limits.RootMutations, "root mutations")
	}
	return nil
}
