package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Maximum number of errors reported for one document, and maximum length of each message in bytes. Messages contain names
// chosen by the caller.
const (
	maxErrors       = 10
	maxMessageBytes = 400
)

// Limits of the cache of valid documents. Polling clients send the same document every few seconds.
const (
	cachedDocuments = 256
	maxCachedBytes  = 8 << 10
)

// validationRules returns the validation rules of the specification that apply here. It omits some rules that existing clients violate and
// that are not essential: known type names, allowed positions of variables, unused variables, argument names and correct values. The
// coercer checks argument names and values more leniently. Field merging checks for overlapping fields. No rule reads the value of a
// literal.
func validationRules() []core.Rule {
	return []core.Rule{ // sorted by name, which is the order of reported errors
		fieldsOnCorrectType(),
		rules.FragmentsOnCompositeTypesRule,
		rules.KnownDirectivesRule,
		rules.KnownFragmentNamesRule,
		rules.LoneAnonymousOperationRule,
		rules.MaxIntrospectionDepth,
		rules.NoFragmentCyclesRule,
		rules.NoUndefinedVariablesRule,
		rules.NoUnusedFragmentsRule,
		rules.PossibleFragmentSpreadsRule,
		rules.ProvidedRequiredArgumentsRule,
		rules.ScalarLeafsRule,
		rules.UniqueArgumentNamesRule,
		rules.UniqueDirectivesPerLocationRule,
		rules.UniqueFragmentNamesRule,
		rules.UniqueInputFieldNamesRule,
		rules.UniqueOperationNamesRule,
		rules.UniqueVariableNamesRule,
	}
}

// fieldsOnCorrectType is the rule of that name. It computes suggestions only for the errors that are reported, because a
// document can have thousands of errors.
func fieldsOnCorrectType() core.Rule {
	return core.Rule{Name: "FieldsOnCorrectType", RuleFunc: func(observers *core.Events, addError core.AddErrFunc) {
		found := 0
		observers.OnField(func(_ *core.Walker, field *ast.Field) {
			if field.ObjectDefinition == nil || field.Definition != nil {
				return
			}
			message := `Cannot query field "` + field.Name + `" on type "` + field.ObjectDefinition.Name + `".`
			if found++; found <= maxErrors {
				message += suggestion(field.Name, field.ObjectDefinition.Fields)
			}
			addError(core.Message("%s", message), core.At(field.Position))
		})
	}}
}

// Request is one GraphQL request.
type Request struct {
	// Query is the document.
	Query string
	// Operation is the name of the operation to execute. If it is "", the document must have a single operation.
	Operation string
	// Variables holds decoded JSON. Numbers are json.Number.
	Variables map[string]any
}

// RootField is a root field of a document.
type RootField struct {
	// Key is the name of the field in the response.
	Key, Name string
	doc       *ast.QueryDocument
	set       ast.SelectionSet
	at        *ast.Position
}

// Selects reports whether the selection set of f contains a field with the given name. It ignores directives.
func (f RootField) Selects(name string) bool {
	return slices.ContainsFunc(roots(f.doc, f.set), func(sub RootField) bool { return sub.Name == name })
}

// Document is the parsed document of a request, and the operation to execute.
type Document struct {
	Request
	doc *ast.QueryDocument
	def *ast.OperationDefinition
	// valid reports that the document is known to be valid.
	valid bool
	fault *Error
}

// Parse parses the document of a request or takes it from the cache of valid documents. A fault in it is reported by [Engine.Prepare].
func (e *Engine[X]) Parse(r Request) *Document {
	d := &Document{Request: r}
	if d.doc, d.valid = e.valid.Get(r.Query); !d.valid {
		if d.doc, d.fault = parse(r.Query, e.cfg.Limits); d.fault != nil {
			return d
		}
		for _, op := range d.doc.Operations {
			e.name(op.SelectionSet)
		}
		for _, f := range d.doc.Fragments {
			e.name(f.SelectionSet)
		}
	}
	d.def, d.fault = choose(d.doc, r.Operation)
	return d
}

// Roots returns the root fields of the operation that the request selects, or nil if the document cannot be parsed. It follows fragments
// and ignores directives. The document need not be valid.
func (d *Document) Roots() []RootField {
	if d.fault != nil {
		return nil
	}
	return roots(d.doc, d.def.SelectionSet)
}

// Prepare validates a document and plans its execution. It returns the errors if the request is invalid. A Document is prepared at most once.
func (e *Engine[X]) Prepare(d *Document) (*Operation[X], []*Error) {
	fault := d.fault
	if fault == nil && d.def.Operation == ast.Subscription {
		fault = invalid("subscriptions are not available")
	}
	if fault != nil {
		return nil, []*Error{fault}
	}
	asked := d.Roots()
	if op := e.removed(asked, d.def); op != nil {
		return op, nil
	}
	if !d.valid {
		if faults := e.validate(d.doc); len(faults) > 0 {
			return nil, faults
		}
		e.keep(d.Query, d.doc)
	}
	op, faults := e.plan(d.doc, d.def, d.Variables)
	if len(faults) > 0 {
		return nil, faults
	}
	op.RequestedRoots = asked
	return op, nil
}

// removed returns an operation that yields the errors of Config.Removed, or nil unless all root fields are removed ones.
func (e *Engine[X]) removed(asked []RootField, def *ast.OperationDefinition) *Operation[X] {
	op := &Operation[X]{Name: def.Name, Removed: true, RequestedRoots: asked, engine: e, of: e.root(def)}
	seen := map[string]bool{}
	for _, f := range asked {
		err := e.cfg.Removed(f)
		if err == nil {
			return nil
		}
		if seen[f.Key] {
			continue
		}
		seen[f.Key] = true
		op.roots = append(op.roots, &node[X]{
			key: f.Key, name: f.Name, typ: ast.NamedType("String", nil),
			resolve: func(context.Context, X, any, Input) (any, error) { return nil, err },
		})
	}
	if len(op.roots) == 0 {
		return nil
	}
	return op
}

// name replaces the names of the fields of a selection with the schema's names. The keys of the fields in the response stay unchanged.
func (e *Engine[X]) name(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			s.Name = e.cfg.Named(s.Name)
			e.name(s.SelectionSet)
		case *ast.InlineFragment:
			e.name(s.SelectionSet)
		}
	}
}

// keep caches a valid document. It skips mutations, whose inlined passwords and environments must not outlive the
// request.
func (e *Engine[X]) keep(source string, doc *ast.QueryDocument) {
	mutates := func(op *ast.OperationDefinition) bool { return op.Operation != ast.Query }
	if len(source) <= maxCachedBytes && !slices.ContainsFunc(doc.Operations, mutates) {
		e.valid.Add(source, doc)
	}
}

// parse parses a document within the limits on length and tokens.
func parse(source string, l Limits) (*ast.QueryDocument, *Error) {
	if len(source) > l.Document {
		fault := LimitExceeded("document", l.Document, "bytes")
		fault.Code = CodeTooLarge
		return nil, fault
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: source}, l.Tokens)
	g, located := errors.AsType[*gqlerror.Error](err)
	switch {
	case err == nil && len(doc.Operations) > 0:
		return doc, nil
	case err == nil:
		return nil, &Error{Message: "Syntax Error: the document has no operation", Code: CodeParse}
	case !located:
		return nil, &Error{Message: "Syntax Error: " + err.Error(), Code: CodeParse}
	case len(g.Locations) == 0: // only the token limit error has no location
		return nil, LimitExceeded("tokens", l.Tokens, "tokens")
	}
	return nil, &Error{
		Message: "Syntax Error: " + Clip(g.Message), Code: CodeParse,
		Line: g.Locations[0].Line, Column: g.Locations[0].Column,
	}
}

// choose returns the operation to execute.
func choose(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, *Error) {
	if name == "" {
		if len(doc.Operations) > 1 {
			return nil, invalid("Must provide operation name if query contains multiple operations.")
		}
		return doc.Operations[0], nil
	}
	if op := doc.Operations.ForName(name); op != nil {
		return op, nil
	}
	return nil, invalid(`Unknown operation named "` + Clip(name) + `".`)
}

// validate applies the rules of the specification and the limit on directives. For a document whose shape is known to be
// valid it only walks the document, which sets the definitions of its fields.
func (e *Engine[X]) validate(doc *ast.QueryDocument) []*Error {
	shape, directives := shapeOf(doc)
	if most := e.cfg.Limits.Directives; directives > most {
		return []*Error{LimitExceeded("directives", most, "directives")}
	}
	if _, known := e.shapes.Get(shape); known {
		core.Walk(e.schema, doc, &core.Events{})
		return nil
	}
	faults := e.applyRules(doc)
	if len(faults) == 0 && len(shape) <= maxCachedBytes {
		e.shapes.Add(shape, struct{}{})
	}
	return faults
}

// applyRules applies the rules of the specification.
func (e *Engine[X]) applyRules(doc *ast.QueryDocument) []*Error {
	var found []*gqlerror.Error
	events := &core.Events{}
	for _, rule := range e.rules {
		rule.RuleFunc(events, func(options ...core.ErrorOption) {
			g := &gqlerror.Error{}
			for _, option := range options {
				option(g)
			}
			found = append(found, g)
		})
	}
	core.Walk(e.schema, doc, events)
	var faults []*Error
	for _, g := range found {
		fault := invalid(clip(g.Message, maxMessageBytes))
		if len(g.Locations) > 0 {
			fault.Line, fault.Column = g.Locations[0].Line, g.Locations[0].Column
		}
		if faults = append(faults, fault); len(faults) == maxErrors {
			break
		}
	}
	return faults
}

// shapeOf returns the tokens of a valid document without the contents of its literals, so that the shape holds no
// passwords or environments. It also counts directives, which are the only tokens that begin with "@".
func shapeOf(doc *ast.QueryDocument) (shape string, directives int) {
	var tokens []byte
	for lex := lexer.New(doc.Position.Src); ; {
		token, err := lex.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return string(tokens), directives
		}
		switch token.Kind { //nolint:exhaustive // the others need no treatment of their own
		case lexer.Comment:
			continue
		case lexer.At:
			directives++
		case lexer.Name:
			tokens = append(tokens, token.Value...)
		}
		tokens = append(tokens, byte(token.Kind)) // not a byte of any name
	}
}

// roots lists the fields of a selection. It follows each fragment once, so that cycles end.
func roots(doc *ast.QueryDocument, set ast.SelectionSet) []RootField {
	var fields []RootField
	seen := map[string]bool{}
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				fields = append(fields, RootField{Key: s.Alias, Name: s.Name, doc: doc, set: s.SelectionSet, at: s.Position})
			case *ast.InlineFragment:
				walk(s.SelectionSet)
			case *ast.FragmentSpread:
				if def := doc.Fragments.ForName(s.Name); def != nil && !seen[s.Name] {
					seen[s.Name] = true
					walk(def.SelectionSet)
				}
			}
		}
	}
	walk(set)
	return fields
}
