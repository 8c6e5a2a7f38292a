package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// sender is a filter.Sender that sends only reads and simulates the platform's responses to other calls.
type sender struct {
	*DryRun

	mu sync.Mutex // guards simulated
	// simulated contains resources created or changed by simulated calls, by the path that reads them. The value is nil for deleted
	// resources.
	simulated map[string]any
}

// Send implements filter.Sender.
func (s *sender) Send(ctx context.Context, ex *filter.Exchange) (done func(), err error) {
	done = func() {}
	ex.MarkSent()
	s.mu.Lock()
	doc, known := s.simulated[ex.Out.Path]
	s.mu.Unlock()
	switch {
	case ex.Operation.Mutates:
		return done, s.simulate(ctx, ex)
	case known:
		return done, answer(ex, http.StatusOK, doc)
	case !ex.Out.Buffered, s.Offline && ex.PassesListThrough():
		return done, answer(ex, ex.Operation.SuccessStatus, map[string]any{}) // nothing reads this body
	case s.Offline:
		return nil, errOffline
	}
	return s.Pipeline.Ports.Sender.Send(ctx, ex)
}

// answer simulates a response of the platform with doc as its body, or a 404 if doc is nil.
func answer(ex *filter.Exchange, status int, doc any) error {
	ex.SimulateResponse(&filter.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Relayed: true})
	if doc == nil {
		ex.Response.Status, ex.Response.Body = http.StatusNotFound, problem.NotFound.New("the resource was deleted by an earlier call").JSON()
		return nil
	}
	var err error
	if ex.Response.Body, err = strictjson.Append(nil, doc); err != nil {
		return fmt.Errorf("encode a simulated response: %w", err)
	}
	return nil
}

// simulate simulates the response to a change. Later reads of the same run see the changed resource.
func (s *sender) simulate(ctx context.Context, ex *filter.Exchange) error {
	in := ex.Evaluation.Input
	row, _ := operation.Lookup(ex.Operation.ID)
	body, _ := ex.Body.Doc.(map[string]any)
	verb := row.EffectiveVerb(body)
	after, _ := in.Resource.After.(map[string]any)
	if verb == operation.VerbCreate {
		return s.create(ex, row.Kind, after)
	}
	current, _ := in.Resource.Current.(map[string]any)
	get := s.Reads[ex.Operation.ID]
	if get != nil && current == nil {
		// For a stop or delete, the resource has not been read, and no call is sent that would show whether it exists.
		doc, refusal, _ := s.Reader.Read(ctx, ex, get, ex.Params) // after an error the simulated response has fewer details
		if refusal != nil {
			ex.SimulateResponse(refusal)
			return nil
		}
		current, _ = doc.(map[string]any)
	}
	var left any // what later reads return
	switch verb {
	case operation.VerbDelete:
	case operation.VerbExec:
		left = map[string]any{"output": "", "error": nil}
	case operation.VerbStop:
		left = stopped(current, ex.Params["id"])
	default:
		if after != nil {
			left = recordOf(row.Kind, after)
		}
	}
	if get != nil {
		s.mu.Lock()
		s.simulated[strings.TrimSuffix(ex.Out.Path, "/action")] = left
		s.mu.Unlock()
	}
	if left == nil && ex.Dialect.IsRun() {
		left = map[string]any{} // all responses of the run interface are JSON
	}
	if left == nil {
		ex.SimulateResponse(&filter.Response{Status: http.StatusNoContent, Header: http.Header{}, Relayed: true})
		return nil
	}
	return answer(ex, ex.Operation.SuccessStatus, left)
}

// create simulates a new resource, including the members added by the platform.
func (s *sender) create(ex *filter.Exchange, kind operation.Kind, after map[string]any) error {
	object := recordOf(kind, after)
	object["createdAt"] = ex.In.Received.UTC().Format("2006-01-02T15:04:05Z")
	if kind == operation.KindPod {
		object["cost"] = json.Number(ex.Evaluation.Input.Cost.Hourly.String())
	}
	s.mu.Lock()
	id := "explained" + strconv.Itoa(len(s.simulated)+1)
	object["id"] = id
	s.simulated[ex.Out.Path+"/"+id] = object
	s.mu.Unlock()
	return answer(ex, ex.Operation.SuccessStatus, object)
}

// stopped returns a pod after a stop.
func stopped(current map[string]any, id string) map[string]any {
	if current == nil {
		current = map[string]any{"id": id}
	}
	after, err := nextstate.Action(current, "stop")
	if err != nil {
		return current
	}
	return recordOf(operation.KindPod, after)
}

// recordOf adds members that records of a kind have in addition to requests.
func recordOf(kind operation.Kind, object map[string]any) map[string]any {
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
	default: // translators need no other members of other kinds
	}
	maps.Copy(defaults, object)
	if enabled, ok := defaults["globalNetworking"].(bool); ok && kind == operation.KindPod {
		defaults["globalNetworking"] = map[string]any{"enabled": enabled}
	}
	return defaults
}
