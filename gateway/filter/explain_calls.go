package filter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/effective"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
)

// translate rehearses a legacy request: its translator makes its v2 calls on a
// caller that sends none but reads.
func (s *stageplay) translate(ctx context.Context, ex *Exchange) ExplainedStage {
	stage := ExplainedStage{Name: "translate", Result: stagePassed}
	in := &translate.Incoming{
		Params: ex.Params, Query: ex.Query, Body: ex.Doc, HasBody: ex.HasDoc, Account: ex.Caller.Org, Caller: ex.Caller.Key,
		Header: http.Header{"User-Agent": ex.In.Header["User-Agent"], "Content-Type": ex.In.Header["Content-Type"]},
	}
	var out *translate.Outgoing
	err := guard(ctx, ex, "translate", func(ctx context.Context, ex *Exchange) error {
		out = s.r.Translators[ex.Dialect].Serve(ctx, ex.Route.ID, in, &understudy{play: s, parent: ex})
		return nil
	})
	if err != nil {
		s.r.Pipeline.Chain.refuse(ex, "translate", err)
		stage.Result, stage.Notes = stageUnknown, []string{"the translation broke off"}
		s.x.Verdict = VerdictUnknown
		return stage
	}
	if len(out.V2) > 0 {
		stage.Notes = append(stage.Notes, "becomes "+strings.Join(out.V2, ", "))
	}
	for _, w := range out.Warnings {
		stage.Notes = append(stage.Notes, "lost in translation: "+headerText(w))
	}
	s.end(out, &stage)
	return stage
}

// end is how the legacy request ends: by the answer its translator gives.
func (s *stageplay) end(out *translate.Outgoing, stage *ExplainedStage) {
	x := s.x
	if out.Status < http.StatusBadRequest && !graphQLErrors(out) {
		return
	}
	if x.Verdict == VerdictAllowed {
		x.Verdict = VerdictRefused
	}
	x.Status, x.Stage, x.Refusal = out.Status, "translate", "translation"
	for _, c := range x.Calls {
		if c.Verdict == VerdictUnknown {
			x.Verdict = VerdictUnknown
		}
		if c.Refusal != "" {
			x.Refusal, x.Detail = c.Refusal, c.Detail
		}
	}
	stage.Result = string(x.Verdict)
	stage.Notes = append(stage.Notes, fmt.Sprintf("the caller would be told %d %s", out.Status, headerText(string(out.Body))))
	if x.Detail == "" {
		x.Detail = headerText(string(out.Body))
	}
}

// graphQLErrors tells whether a GraphQL answer, which is 200 whatever happens,
// holds errors.
func graphQLErrors(out *translate.Outgoing) bool {
	doc, err := strictjson.DecodeLenient(out.Body)
	if err != nil {
		return false
	}
	m, _ := doc.(map[string]any)
	list, _ := m["errors"].([]any)
	return len(list) > 0
}

// understudy is the translate.Caller of a rehearsal. Reads are made, changes
// are judged and answered with what the platform might say.
type understudy struct {
	play   *stageplay
	parent *Exchange
}

// Take implements translate.Meter, counting nothing.
func (*understudy) Take(context.Context, int64) (*translate.Response, error) { return nil, nil }

// Call implements translate.Caller.
func (u *understudy) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	s := u.play
	s.turn.Lock()
	defer s.turn.Unlock()
	op := stageOf[*Translate](s.r.Pipeline.Chain.Content).API.Operation(r.Operation)
	if op == nil {
		return nil, fmt.Errorf("translate: unknown v2 operation %q", r.Operation)
	}
	p := u.parent
	ex := &Exchange{
		In: p.In, RequestID: p.RequestID, DecisionID: p.DecisionID, Dialect: route.V2, Operation: op, Caller: p.Caller,
		Params: r.Params, Query: r.Query, Doc: r.Body, HasDoc: r.Body != nil, Origin: r.Origin,
		Event: &telemetry.Event{Dialect: p.Event.Dialect, Operation: op.ID},
	}
	c := s.call(ctx, ex)
	answer, err := s.answer(ctx, ex, &c)
	s.x.Calls = append(s.x.Calls, c)
	return answer, err
}

// answer is what the translator gets for a call that was judged.
func (s *stageplay) answer(ctx context.Context, ex *Exchange, c *ExplainedCall) (*translate.Response, error) {
	switch {
	case c.Verdict == VerdictUnknown && ex.Answer == nil:
		return nil, ErrOffline
	case ex.Answer != nil:
		return response(ex)
	case ex.Operation.Mutates:
		return s.pretend(ex), nil
	}
	if doc, ok := s.made[recentKey{ex.Caller.Org, ex.Out.Path}]; ok {
		return madeAnswer(doc), nil
	}
	if s.r.Offline {
		c.Verdict = VerdictUnknown
		c.Stages = append(c.Stages, ExplainedStage{Name: "dispatch", Result: stageUnknown, Notes: []string{ErrOffline.Error()}})
		return nil, ErrOffline
	}
	return s.read(ctx, ex, c)
}

// read makes a call that changes nothing.
func (s *stageplay) read(ctx context.Context, ex *Exchange, c *ExplainedCall) (*translate.Response, error) {
	dispatch := s.r.Pipeline.Dispatch
	done, err := dispatch.Do(ctx, ex)
	if err != nil {
		s.r.Pipeline.Chain.refuse(ex, "dispatch", err)
		return response(ex)
	}
	defer done()
	if err := (Relay{Upstream: dispatch.Upstream}).Response(ctx, ex); err != nil {
		s.r.Pipeline.Chain.refuse(ex, "relay", err)
	}
	c.Status = ex.Answer.Status
	c.Stages = append(c.Stages, ExplainedStage{
		Name: "dispatch", Result: stagePassed, Notes: []string{fmt.Sprintf("read for real: %d", c.Status)},
	})
	return response(ex)
}

func madeAnswer(doc any) *translate.Response {
	if doc == nil {
		return &translate.Response{Status: http.StatusNotFound, Body: map[string]any{"detail": goneDetail}}
	}
	return &translate.Response{Status: http.StatusOK, Header: jsonHeader(), Body: doc}
}

// pretend is what the platform might answer to a change, which later reads of
// the same rehearsal see.
func (s *stageplay) pretend(ex *Exchange) *translate.Response {
	op := ex.Operation
	row, _ := operation.Of(op.ID)
	body, _ := ex.Doc.(map[string]any)
	after, _ := ex.Input.Resource.After.(map[string]any)
	status := op.SuccessStatus
	object := recordOf(row.Kind, after)
	switch row.Does(body) {
	case operation.VerbCreate:
		id := "explained" + strconv.Itoa(len(s.made)+1)
		object = s.born(row.Kind, id, object, ex)
		s.made[recentKey{ex.Caller.Org, op.Path + "/" + id}] = object
		return &translate.Response{Status: status, Header: jsonHeader(), Body: object}
	case operation.VerbStop:
		object = stopped(ex)
	case operation.VerbDelete:
		object = nil
	default: // what is left is the state that was judged
	}
	if get := stageOf[*Resolve](s.r.Pipeline.Chain.Call).Reads[op.ID]; get != nil {
		s.made[recentKey{ex.Caller.Org, expand(get.Path, ex.Params)}] = anyObject(object)
	}
	if object == nil {
		return &translate.Response{Status: http.StatusNoContent}
	}
	return &translate.Response{Status: status, Header: jsonHeader(), Body: object}
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// anyObject is a map, or nil without a type.
func anyObject(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// stopped is a pod after a stop.
func stopped(ex *Exchange) map[string]any {
	current, _ := ex.Input.Resource.Current.(map[string]any)
	if current == nil {
		current = map[string]any{"id": ex.Params["id"]}
	}
	after, err := effective.Action(current, "stop")
	if err != nil {
		return current
	}
	return recordOf(operation.KindPod, after)
}

// missing answers a change of what is not there as the platform would. Nobody
// had to read it for a decision about a stop or a delete.
func (s *stageplay) missing(ctx context.Context, ex *Exchange, c *ExplainedCall) {
	f := s.resolve(stageOf[*Resolve](s.r.Pipeline.Chain.Call))
	get := f.Reads[ex.Operation.ID]
	if get == nil || !ex.Operation.Mutates || ex.Input == nil || ex.Input.Resource.Current != nil || s.r.Offline {
		return
	}
	current, refusal, err := f.Reader.Read(ctx, ex, get, ex.Params)
	if err != nil {
		return // the explanation is none the worse for it
	}
	ex.Input.Resource.Current = current
	if refusal == nil {
		return
	}
	ex.Answer = refusal
	e := ex.Event
	e.Refusal, e.Stage, e.Detail = refusalOfPlatform, "dispatch", detailOf(refusal)
	c.Verdict, c.Status, c.Refusal, c.Detail = VerdictRefused, refusal.Status, e.Refusal, e.Detail
	c.Stages = append(c.Stages, ExplainedStage{
		Name: "dispatch", Result: stageRefused, Notes: []string{fmt.Sprintf("the platform would answer %d: %s", refusal.Status, e.Detail)},
	})
}

// detailOf is what a refusal's problem says.
func detailOf(a *Answer) string {
	doc, err := strictjson.DecodeLenient(a.Body)
	if m, ok := doc.(map[string]any); err == nil && ok {
		if detail, ok := m["detail"].(string); ok {
			return detail
		}
	}
	return http.StatusText(a.Status)
}

// refusalOfPlatform is the kind of a refusal that is not the gateway's.
const refusalOfPlatform = "platform"

// born gives a new object what the platform adds to it.
func (s *stageplay) born(kind operation.Kind, id string, object map[string]any, ex *Exchange) map[string]any {
	out := maps.Clone(object)
	if out == nil {
		out = map[string]any{}
	}
	out["id"] = id
	out["createdAt"] = s.x.Time.UTC().Format("2006-01-02T15:04:05Z")
	if kind == operation.KindPod {
		out["cost"] = json.Number(ex.Input.Cost.Hourly.String())
	}
	return out
}

// recordOf gives an object the members that records of its kind have beyond
// what a request says.
func recordOf(kind operation.Kind, object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	defaults := map[string]any{}
	switch kind {
	case operation.KindPod:
		defaults = map[string]any{
			"status": "PROVISIONING", "actions": []any{}, "args": "", "disk": json.Number("0"), "mounts": map[string]any{},
			"ports": []any{}, "env": map[string]any{}, "registry": nil, "dataCenterId": nil, "cudaVersion": nil,
			"template": nil, "locked": false, "runtime": nil, "startedAt": nil, "cost": json.Number("0"),
		}
	case operation.KindEndpoint:
		defaults = map[string]any{
			"args": "", "ports": []any{}, "env": map[string]any{}, "registry": nil, "dataCenterIds": []any{}, "networkVolumes": []any{},
		}
	case operation.KindTemplate:
		defaults = map[string]any{
			"args": "", "disk": json.Number("0"), "ports": []any{}, "env": map[string]any{}, "registry": nil,
			"mounts": map[string]any{}, "allowedCudaVersions": []any{},
		}
	default: // the translators read nothing else of the others
	}
	maps.Copy(defaults, object)
	if enabled, ok := defaults["globalNetworking"].(bool); ok && kind == operation.KindPod {
		defaults["globalNetworking"] = map[string]any{"enabled": enabled}
	}
	return defaults
}
