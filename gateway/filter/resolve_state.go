package filter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// resolveStates sets the resource before and after the call. before is the input of the previous round, nil in the first round.
func (f *EvaluatePolicies) resolveStates(ctx context.Context, ex *Exchange, verb operation.Verb, before *policies.Input) error {
	in := ex.Evaluation.Input
	body, isObject := ex.Body.Doc.(map[string]any)
	if ex.Body.HasDoc && !isObject {
		in.Resource.After = in.Request.Body
		return nil
	}
	needs := nextstate.NeedsOf(ex.Operation.ID, body)
	if needs.Current {
		if err := f.current(ctx, ex, before); err != nil || ex.Response != nil {
			return err
		}
	}
	if needs.Template != "" {
		if ex.Operation.ID == "createCluster" && before == nil {
			ex.forget(f.Template, map[string]string{"id": needs.Template}) // do not use the cache: the ID may be sent, see seal
		}
		if err := f.template(ctx, ex, needs.Template); err != nil || ex.Response != nil {
			return err
		}
	}
	var template map[string]any
	if t := in.Resource.Template; t != nil {
		template, _ = t.Record.(map[string]any)
	}
	after, err := stateAfter(in, body, template, verb)
	if fault, ok := errors.AsType[*nextstate.Fault](err); ok {
		return faultProblem(fault)
	}
	if err != nil {
		return fmt.Errorf("state after %s: %w", ex.Operation.ID, err)
	}
	in.Resource.After = after
	if ex.Translation.template != nil && needs.Template == "" {
		return f.origin(ctx, ex)
	}
	return nil
}

// origin adds the template used by the translator to the input, as if the body named it. The resulting state is unaffected, because the
// body already contains the template's values.
func (f *EvaluatePolicies) origin(ctx context.Context, ex *Exchange) error {
	in, id := ex.Evaluation.Input, ex.Translation.template.TemplateID
	if ex.Translation.template.Record != nil {
		in.Resource.Template = &policies.Template{ID: id, Own: true, Record: ex.Translation.template.Record}
		return nil
	}
	return f.template(ctx, ex, id)
}

// bodyForPolicies returns the body as policies see it: with the ID of the template used by the translator, and without the value of a
// secret.
func bodyForPolicies(ex *Exchange, doc any) any {
	body, isObject := doc.(map[string]any)
	if !isObject {
		return doc
	}
	body = nextstate.WithoutValue(ex.Operation.ID, body)
	if ex.Translation.template == nil || body["templateId"] != nil {
		return body
	}
	body = maps.Clone(body)
	body["templateId"] = ex.Translation.template.TemplateID
	return body
}

func stateAfter(in *policies.Input, body, template map[string]any, verb operation.Verb) (map[string]any, error) {
	op := in.Request.Operation
	current, _ := in.Resource.Current.(map[string]any)
	switch verb {
	case operation.VerbCreate:
		return nextstate.Create(op, body, template)
	case operation.VerbStart, operation.VerbRestart:
		action, _ := body["action"].(string)
		return nextstate.Action(current, action)
	default:
		return nextstate.Update(op, current, body, template)
	}
}

// current reads the resource that is changed, once per exchange and never from the cache.
func (f *EvaluatePolicies) current(ctx context.Context, ex *Exchange, before *policies.Input) error {
	in := ex.Evaluation.Input
	if before != nil && before.Resource.Current != nil {
		in.Resource.Current = before.Resource.Current
		return nil
	}
	get := f.Reads[ex.Operation.ID]
	if get == nil {
		return fmt.Errorf("operation %s changes a resource that no operation reads", ex.Operation.ID)
	}
	current, refusal, err := f.Reader.Read(ctx, ex, get, ex.Params)
	if err != nil {
		return err
	}
	ex.Response, in.Resource.Current = refusal, current
	return nil
}

// template reads the template named in a body, which may be the account's own or public.
func (f *EvaluatePolicies) template(ctx context.Context, ex *Exchange, id string) error {
	if !f.Template.ValidPathParam("id", id) {
		return noTemplate(ex)
	}
	doc, refusal, err := f.Reader.ReadCached(ctx, ex, f.Template, map[string]string{"id": id})
	if refusal != nil && refusal.Status == http.StatusNotFound && ex.Operation.ID == createSandbox {
		return noTemplate(ex)
	}
	if err != nil || refusal != nil {
		ex.Response = refusal
		return err
	}
	record, ok := doc.(map[string]any)
	if !ok || record["id"] != id {
		return problem.UpstreamFailed.New("the platform returned a different template than requested")
	}
	t := &policies.Template{ID: id, Record: record}
	t.Public, _ = record["public"].(bool)
	// A template that is not public is visible to its owner only. Whether a public template is the account's own is determined from the
	// account's list.
	if t.Own = record["public"] == false; !t.Own {
		if t.Own, refusal, err = f.Reader.listed(ctx, ex, f.Templates, id); err != nil || refusal != nil {
			ex.Response = refusal
			return err
		}
	}
	ex.Evaluation.Input.Resource.Template = t
	return nil
}

// createSandbox is the ID of the only operation that the platform refuses with 422 if the template does not exist.
const createSandbox = "createSandbox"

// noTemplate returns the platform's refusal of a body with an unknown template.
func noTemplate(ex *Exchange) error {
	const text = "no template has this id"
	if ex.Operation.ID != createSandbox {
		return problem.NotFound.New(text)
	}
	p := problem.Invalid.New(text)
	p.Errors = []string{"$.templateId: " + text}
	return p
}

// faultProblem returns the platform's refusal of a change that cannot be merged.
func faultProblem(f *nextstate.Fault) error {
	kind := problem.RuleBroken
	if f.Status == http.StatusUnprocessableEntity {
		kind = problem.Invalid
	}
	p := kind.New(f.Detail)
	if f.Status != p.Status {
		p.Status, p.Title = f.Status, http.StatusText(f.Status)
	}
	p.Errors = []string{JSONPath(f.Pointer) + ": " + f.Detail}
	return p
}
