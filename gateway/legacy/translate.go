package legacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
)

// Translate responds to legacy requests. Each v2 call of the translator passes the call filters and is sent to the platform.
type Translate struct{}

// Name implements filter.Filter.
func (Translate) Name() string { return "translate" }

// Request responds to a legacy request and does nothing for other requests.
func (Translate) Request(ctx context.Context, ex *filter.Exchange) error {
	t := translatorOf(ex)
	if t == nil {
		return nil
	}
	in := &translate.Incoming{
		Params:  ex.Params,
		Query:   ex.Query,
		Header:  http.Header{"User-Agent": ex.In.Header["User-Agent"], "Content-Type": ex.In.Header["Content-Type"]},
		Body:    ex.Body.Doc,
		HasBody: ex.Body.HasDoc,
		Parsed:  ex.Translation.Parsed,
	}
	if ex.Caller != nil {
		in.Account, in.Caller = ex.Caller.Org, ex.Caller.Key
	}
	in.CatalogAllowed = ex.Tenant != nil
	c := &caller{api: t.api, parent: ex}
	c.calls.Begin(ex, t.lists)
	out := t.dialect.Serve(ctx, ex.Route.ID, in, c)
	c.calls.Finish(responseOf(out), out.Operations, out.LostFields)
	e := ex.Event
	if e.Calls = out.V2; out.Reason != "" && len(out.V2) == 0 {
		e.Refusal, e.Stage, e.Detail = string(kindOf(out.Status)), Translate{}.Name(), out.Reason
	}
	return nil
}

// kindOf returns the kind of an error of the translator itself.
func kindOf(status int) problem.Kind {
	switch {
	case status == http.StatusUnauthorized:
		return problem.Unauthorized
	case status == http.StatusNotFound:
		return problem.NotFound
	case status >= http.StatusInternalServerError:
		return problem.Internal
	}
	return problem.Invalid
}

// Notes implements filter.Explainer.
func (Translate) Notes(ex *filter.Exchange, _ string) []string {
	if len(ex.Event.Calls) == 0 {
		return nil
	}
	return []string{"translated to " + strings.Join(ex.Event.Calls, ", ")}
}

// caller implements translate.Caller for one legacy request.
type caller struct {
	calls  filter.Calls
	api    *schema.API
	parent *filter.Exchange
}

// allowedAnonymously reports whether anonymous legacy requests may call a v2 operation. Only operations that list offers and prices are
// allowed.
func allowedAnonymously(id string) bool {
	row, _ := operation.Lookup(id)
	return row.Kind == operation.KindCatalog
}

// Call implements translate.Caller.
func (c *caller) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	op := c.api.Operation(r.Operation)
	if op == nil {
		return nil, fmt.Errorf("translate: unknown v2 operation %q", r.Operation)
	}
	who := c.parent.Caller
	if who == nil {
		if c.parent.Tenant == nil || !allowedAnonymously(op.ID) {
			return &translate.Response{Status: http.StatusUnauthorized, Body: map[string]any{"detail": translate.MissingKeyText}}, nil
		}
		who = &identity.Caller{Org: c.parent.Tenant.ID, Key: anonymousKey, Roles: []identity.Role{identity.RoleViewer}}
	}
	call := filter.Call{Operation: op, Params: r.Params, Query: r.Query, Body: r.Body, Template: (*filter.TemplateOrigin)(r.Origin)}
	row, _ := operation.Lookup(op.ID)
	if row.Verb != operation.VerbCreate {
		call.Read = r.Read
		return c.run(ctx, c.calls.New(who, call))
	}
	call.Fingerprint, call.StopAt, call.TerminateAt = r.FingerprintText, r.StopAt, r.TerminateAt
	ex := c.calls.New(who, call)
	if (!r.StopAt.IsZero() || !r.TerminateAt.IsZero()) && ex.Tenant.Budgets == nil {
		const detail = "stopping or terminating pods at a set time requires a budget, which the organisation does not have"
		return &translate.Response{Status: http.StatusBadRequest, Body: map[string]any{"detail": detail}, Refused: true}, nil
	}
	return c.create(ctx, ex, r.OnLateSuccess)
}

// run executes a call.
func (c *caller) run(ctx context.Context, ex *filter.Exchange) (*translate.Response, error) {
	body, err := c.calls.Run(ctx, ex)
	row, _ := operation.Lookup(ex.Operation.ID)
	switch {
	case ex.Event.Refusal == string(problem.OutcomeUnknown):
		return nil, &translate.UnfinishedError{Noun: row.Kind.Noun()}
	case ex.Operation.Mutates && ex.Sent == filter.SentUnanswered && ex.Adopted == "":
		return nil, errors.Join(translate.ErrAmbiguous, ex.Event.Cause, err, ctx.Err())
	case ctx.Err() != nil && ex.Sent != filter.Answered && ex.Adopted == "":
		return nil, errors.Join(ex.Event.Cause, ctx.Err())
	case err != nil:
		return nil, err
	}
	return &translate.Response{
		Status: ex.Response.Status, Header: ex.Response.Header, Body: body, Kind: ex.Event.Refusal, Hidden: ex.HidesResource(),
		Refused:            ex.Sent == filter.NotSent && ex.Event.Refusal != "" && ex.Event.Stage != filter.StageDispatch,
		FromEarlierRequest: (ex.Adopted != "" || ex.Response.Header[filter.HeaderReplayed] != nil) && ex.Sent == filter.NotSent,
	}, nil
}

// create executes a call that creates a resource. If ctx ends first, the call continues in the background, because it cannot be undone. A
// repeat of the request then receives the resource.
func (c *caller) create(
	ctx context.Context, ex *filter.Exchange, onLateSuccess func(context.Context, *translate.Response),
) (*translate.Response, error) {
	type reply struct {
		made *translate.Response
		err  error
	}
	ended, outlived := make(chan reply, 1), make(chan bool, 1)
	row, _ := operation.Lookup(ex.Operation.ID)
	ex.Ports.Background(func() {
		made, err := c.run(ctx, ex)
		ended <- reply{made, err}
		if <-outlived && err == nil && made.OK() && onLateSuccess != nil {
			onLateSuccess(context.WithoutCancel(ctx), made)
		}
	})
	select {
	case e := <-ended:
		outlived <- false
		return e.made, e.err
	case <-ctx.Done():
	}
	outlived <- true
	return nil, &translate.UnfinishedError{Noun: row.Kind.Noun()}
}

var _ translate.Record = (*strictjson.Node)(nil)
