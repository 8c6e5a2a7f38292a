package filter

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/effective"
)

// settle fills in the state before and after. before is the input of an
// earlier round of the same exchange, nil in the first.
func (f *Resolve) settle(ctx context.Context, ex *Exchange, verb policies.Verb, before *policies.Input) error {
	in := ex.Input
	body, isObject := ex.Doc.(map[string]any)
	if ex.HasDoc && !isObject {
		in.Resource.After = in.Request.Body
		return nil
	}
	needs := effective.NeedsOf(ex.Operation.ID, body)
	if needs.Current {
		if err := f.current(ctx, ex, before); err != nil || ex.Answer != nil {
			return err
		}
	}
	if needs.Template != "" {
		if err := f.template(ctx, ex, needs.Template); err != nil || ex.Answer != nil {
			return err
		}
	}
	after, err := stateAfter(in, body, verb)
	if fault, ok := errors.AsType[*effective.Fault](err); ok {
		return faultProblem(fault)
	}
	if err != nil {
		return fmt.Errorf("state after %s: %w", ex.Operation.ID, err)
	}
	in.Resource.After = after
	return nil
}

func stateAfter(in *policies.Input, body map[string]any, verb policies.Verb) (map[string]any, error) {
	op := in.Request.Operation
	current, _ := in.Resource.Current.(map[string]any)
	var template map[string]any
	if in.Resource.Template != nil {
		template, _ = in.Resource.Template.Record.(map[string]any)
	}
	switch verb {
	case policies.VerbCreate:
		return effective.Create(op, body, template)
	case policies.VerbStart, policies.VerbRestart:
		action, _ := body["action"].(string)
		return effective.Action(current, action)
	default:
		return effective.Update(op, current, body, template)
	}
}

// current reads the object that is changed: once for an exchange, but for each
// exchange anew.
func (f *Resolve) current(ctx context.Context, ex *Exchange, before *policies.Input) error {
	in := ex.Input
	if before != nil && before.Resource.Current != nil {
		in.Resource.Current = before.Resource.Current
		return nil
	}
	get := f.Reads[ex.Operation.ID]
	if get == nil {
		return fmt.Errorf("no operation reads the object of %s", ex.Operation.ID)
	}
	current, refusal, err := f.Reader.Read(ctx, ex, get, ex.Params)
	if err != nil {
		return err
	}
	ex.Answer, in.Resource.Current = refusal, current
	return nil
}

// template reads the template a body names, the account's own or a public one.
func (f *Resolve) template(ctx context.Context, ex *Exchange, id string) error {
	if !f.Template.ValidPathParam("id", id) {
		return problem.NotFound.New("no template has this id")
	}
	doc, refusal, err := f.Reader.Recall(ctx, ex, f.Template, map[string]string{"id": id})
	if err != nil || refusal != nil {
		ex.Answer = refusal
		return err
	}
	record, ok := doc.(map[string]any)
	if !ok || record["id"] != id {
		return problem.UpstreamFailed.New("the platform answered with another template than it was asked for")
	}
	t := &policies.Template{ID: id, Record: record}
	t.Public, _ = record["public"].(bool)
	// Only its owner sees a template that is not public; who else's a public
	// one is, the account's own list tells.
	if t.Own = record["public"] == false; !t.Own {
		if t.Own, refusal, err = f.owns(ctx, ex, id); err != nil || refusal != nil {
			ex.Answer = refusal
			return err
		}
	}
	ex.Input.Resource.Template = t
	return nil
}

func (f *Resolve) owns(ctx context.Context, ex *Exchange, id string) (bool, *Answer, error) {
	doc, refusal, err := f.Reader.Recall(ctx, ex, f.Templates, nil)
	if err != nil || refusal != nil {
		return false, refusal, err
	}
	list, _ := doc.(map[string]any)
	items, _ := list["templates"].([]any)
	for _, item := range items {
		if t, ok := item.(map[string]any); ok && t["id"] == id {
			return true, nil, nil
		}
	}
	return false, nil, nil
}

// faultProblem is the platform's refusal of a change that cannot be merged.
func faultProblem(f *effective.Fault) error {
	kind := problem.RuleBroken
	if f.Status == http.StatusUnprocessableEntity {
		kind = problem.Invalid
	}
	p := kind.New(f.Detail)
	if f.Status != p.Status {
		p.Status, p.Title = f.Status, http.StatusText(f.Status)
	}
	p.Errors = []string{location(f.Pointer) + ": " + f.Detail}
	return p
}
