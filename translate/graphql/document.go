package graphql

import (
	"errors"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// mostErrors bounds how many faults of one document are reported.
const mostErrors = 10

// leniently lists the specification's validation rules that hold here. Left
// out, because clients in the field break them and nothing depends on them:
// known type names and allowed positions of variables, unused variables, and
// correct values, which the coercer checks more leniently. Overlapping fields
// are checked while fields are merged.
func leniently() *rules.Rules {
	return rules.NewRules([]core.Rule{
		rules.FieldsOnCorrectTypeRuleWithoutSuggestions,
		rules.FragmentsOnCompositeTypesRule,
		rules.KnownArgumentNamesRuleWithoutSuggestions,
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
	}...)
}

// parse reads a document within the limits on its length and tokens.
func parse(text string, l Limits) (*ast.QueryDocument, []*fault) {
	if len(text) > l.Document {
		f := limitFault("document", l.Document, "bytes")
		f.code, f.http = codeTooLarge, 413
		return nil, []*fault{f}
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, l.Tokens)
	if err == nil {
		if len(doc.Operations) == 0 {
			return nil, []*fault{{message: "Syntax Error: the document holds no operation", code: codeParse}}
		}
		return doc, nil
	}
	var g *gqlerror.Error
	if !errors.As(err, &g) {
		return nil, []*fault{{message: "Syntax Error: " + err.Error(), code: codeParse}}
	}
	// The parser gives every syntax error a location, and the token limit none.
	if len(g.Locations) == 0 {
		return nil, []*fault{limitFault("tokens", l.Tokens, "tokens")}
	}
	return nil, []*fault{{
		message: "Syntax Error: " + clip(g.Message), code: codeParse,
		line: g.Locations[0].Line, col: g.Locations[0].Column,
	}}
}

func limitFault(name string, most int, unit string) *fault {
	return &fault{
		message: "the request exceeds the limit of " + strconv.Itoa(most) + " " + unit,
		code:    codeLimit, limit: name,
	}
}

// choose picks the one operation to execute.
func choose(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, *fault) {
	if name == "" {
		if len(doc.Operations) > 1 {
			return nil, badValidation("Must provide operation name if query contains multiple operations.")
		}
		return doc.Operations[0], nil
	}
	if op := doc.Operations.ForName(name); op != nil {
		return op, nil
	}
	return nil, badValidation(`Unknown operation named "` + clip(name) + `".`)
}

// validate applies the rules of the specification, and bounds directives.
func (a *API) validate(doc *ast.QueryDocument) []*fault {
	if n := countDirectives(doc); n > a.cfg.Limits.Directives {
		return []*fault{limitFault("directives", a.cfg.Limits.Directives, "directives")}
	}
	var faults []*fault
	for _, g := range validator.ValidateWithRules(a.schema, doc, leniently()) {
		f := &fault{message: clipMessage(g.Message), code: codeValidation}
		if len(g.Locations) > 0 {
			f.line, f.col = g.Locations[0].Line, g.Locations[0].Column
		}
		if faults = append(faults, f); len(faults) == mostErrors {
			break
		}
	}
	return faults
}

// clipMessage bounds a validation message: names in it are the caller's.
func clipMessage(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// countDirectives counts the directives of the whole document, every operation
// and fragment once.
func countDirectives(doc *ast.QueryDocument) int {
	n := 0
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				n += len(s.Directives)
				walk(s.SelectionSet)
			case *ast.InlineFragment:
				n += len(s.Directives)
				walk(s.SelectionSet)
			case *ast.FragmentSpread:
				n += len(s.Directives)
			}
		}
	}
	for _, op := range doc.Operations {
		n += len(op.Directives)
		for _, v := range op.VariableDefinitions {
			n += len(v.Directives)
		}
		walk(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		n += len(f.Directives)
		walk(f.SelectionSet)
	}
	return n
}

// rootFields calls visit for each root field of the operation, fragments
// followed, each fragment once, so that cycles end.
func rootFields(doc *ast.QueryDocument, set ast.SelectionSet, visit func(*ast.Field)) {
	seen := map[string]bool{}
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				visit(s)
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
}
