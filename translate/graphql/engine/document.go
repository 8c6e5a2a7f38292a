package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// maxErrors bounds how many faults of one document are reported, longestMessage
// the bytes of each: names in it are the caller's.
const (
	maxErrors       = 10
	maxMessageBytes = 400
)

// Bounds of the memory of valid documents: pollers send the same one every few seconds.
const (
	cachedDocuments = 256
	maxCachedBytes  = 8 << 10
)

// validationRules lists the specification's validation rules that hold here. Left
// out, because clients in the field break them and nothing depends on them:
// known type names and allowed positions of variables, unused variables, and
// argument names and correct values, which the coercer checks more leniently. Overlapping fields
// are checked while fields are merged. None of them looks at the value of a literal.
func validationRules() []core.Rule {
	list := []core.Rule{
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
	slices.SortFunc(list, func(a, b core.Rule) int { return strings.Compare(a.Name, b.Name) }) // the order of their faults
	return list
}

// fieldsOnCorrectType is the rule of that name. It suggests fields for the faults that are reported alone: a document can have thousands.
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
	// Operation names the operation to execute; "" for the only one.
	Operation string
	// Variables holds decoded JSON, numbers as json.Number.
	Variables map[string]any
}

// RootField is a root field as the document has it.
type RootField struct {
	// Key is its name in the answer.
	Key, Name string
	doc       *ast.QueryDocument
	set       ast.SelectionSet
	at        *ast.Position
}

// Selects reports whether the field's selection has one of the name, whatever
// the directives say.
func (f RootField) Selects(name string) bool {
	return slices.ContainsFunc(roots(f.doc, f.set), func(sub RootField) bool { return sub.Name == name })
}

// Roots lists the root fields of the operation that a request chooses, fragments
// followed and directives ignored. The document need not be valid.
func (e *Engine[X]) Roots(r Request) ([]RootField, []*Error) {
	doc, _, faults := e.document(r.Query)
	if faults != nil {
		return nil, faults
	}
	def, fault := choose(doc, r.Operation)
	if fault != nil {
		return nil, []*Error{fault}
	}
	return roots(doc, def.SelectionSet), nil
}

// Prepare makes a request ready to execute, or reports its faults.
func (e *Engine[X]) Prepare(r Request) (*Operation[X], []*Error) {
	doc, valid, faults := e.document(r.Query)
	if faults != nil {
		return nil, faults
	}
	def, fault := choose(doc, r.Operation)
	if fault != nil {
		return nil, []*Error{fault}
	}
	if def.Operation == ast.Subscription {
		return nil, []*Error{invalid("subscriptions are not available")}
	}
	asked := roots(doc, def.SelectionSet)
	if op := e.removed(asked, def); op != nil {
		return op, nil
	}
	if !valid {
		if faults := e.validate(doc); len(faults) > 0 {
			return nil, faults
		}
		e.keep(r.Query, doc)
	}
	op, faults := e.plan(doc, def, r.Variables)
	if len(faults) > 0 {
		return nil, faults
	}
	op.RequestedRoots = asked
	return op, nil
}

// removed returns the operation whose root fields are all retired, else nil.
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

// document parses a document, or finds it among the valid ones.
func (e *Engine[X]) document(source string) (doc *ast.QueryDocument, valid bool, faults []*Error) {
	if doc, ok := e.valid.Get(source); ok {
		return doc, true, nil
	}
	doc, fault := parse(source, e.cfg.Limits)
	if fault != nil {
		return nil, false, []*Error{fault}
	}
	for _, op := range doc.Operations {
		e.name(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		e.name(f.SelectionSet)
	}
	return doc, false, nil
}

// name gives the fields of a selection the schema's names. Their keys in the
// answer stay as the document has them.
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

// keep remembers a valid document. Only queries are kept: mutations carry
// inlined passwords and environments, which must not outlive their request.
func (e *Engine[X]) keep(source string, doc *ast.QueryDocument) {
	mutates := func(op *ast.OperationDefinition) bool { return op.Operation != ast.Query }
	if len(source) <= maxCachedBytes && !slices.ContainsFunc(doc.Operations, mutates) {
		e.valid.Add(source, doc)
	}
}

// parse reads a document within the limits on its length and tokens.
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
		return nil, &Error{Message: "Syntax Error: the document holds no operation", Code: CodeParse}
	case !located:
		return nil, &Error{Message: "Syntax Error: " + err.Error(), Code: CodeParse}
	case len(g.Locations) == 0: // every syntax error has one, and the token limit none
		return nil, LimitExceeded("tokens", l.Tokens, "tokens")
	}
	return nil, &Error{
		Message: "Syntax Error: " + Clip(g.Message), Code: CodeParse,
		Line: g.Locations[0].Line, Column: g.Locations[0].Column,
	}
}

// choose picks the one operation to execute.
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

// validate applies the rules of the specification, and bounds directives. A document of
// a shape that was valid before is only walked, which tells its fields their definitions.
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

// shapeOf returns the tokens of a document that parses, without what its literals hold:
// its names and how it is made. Passwords and environments are no part of it. It counts
// directives, too: nothing else begins with "@".
func shapeOf(doc *ast.QueryDocument) (shape string, directives int) {
	var tokens []byte
	for lex := lexer.New(doc.Position.Src); ; {
		token, err := lex.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return string(tokens), directives
		}
		if token.Kind == lexer.Comment {
			continue
		}
		if token.Kind == lexer.At {
			directives++
		}
		if token.Kind == lexer.Name {
			tokens = append(tokens, token.Value...)
		}
		tokens = append(tokens, byte(token.Kind)) // which no name has
	}
}

// roots lists the fields of a selection, fragments followed, each fragment once,
// so that cycles end.
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
