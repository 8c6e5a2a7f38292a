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
	"github.com/tollgate-dev/tollgate/policies/effective"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// sender is a filter.Sender that sends nothing but reads. It answers calls that
// it does not send as the platform might.
type sender struct {
	*DryRun

	mu sync.Mutex // guards made
	// simulated holds what calls of the run would have made or changed, by the path
	// that reads it; nil for an object that they would have deleted.
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
		return done, answer(ex, ex.Operation.SuccessStatus, map[string]any{}) // its body is not looked at
	case s.Offline:
		return nil, ErrOffline
	}
	return s.Pipeline.Ports.Sender.Send(ctx, ex)
}

// answer makes an object the platform's answer, nil a resource that is gone.
func answer(ex *filter.Exchange, status int, doc any) error {
	ex.SimulateResponse(&filter.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Relayed: true})
	if doc == nil {
		ex.Response.Status, ex.Response.Body = http.StatusNotFound, problem.NotFound.New("it is gone by then").JSON()
		return nil
	}
	var err error
	if ex.Response.Body, err = strictjson.Append(nil, doc); err != nil {
		return fmt.Errorf("a pretended answer: %w", err)
	}
	return nil
}

// simulate answers a change as the platform might. Later reads of the same run
// see its simulated changes.
func (s *sender) simulate(ctx context.Context, ex *filter.Exchange) error {
	in := ex.Evaluation.Input
	row, _ := operation.Of(ex.Operation.ID)
	body, _ := ex.Body.Doc.(map[string]any)
	verb := row.Does(body)
	after, _ := in.Resource.After.(map[string]any)
	if verb == operation.VerbCreate {
		return s.create(ex, row.Kind, after)
	}
	current, _ := in.Resource.Current.(map[string]any)
	get := s.Reads[ex.Operation.ID]
	if get != nil && current == nil {
		// Nothing was read for a decision about a stop or a delete, and nothing is
		// sent that could show whether the object exists.
		doc, refusal, _ := s.Reader.Read(ctx, ex, get, ex.Params) // without it the answer is vaguer, that is all
		if refusal != nil {
			ex.SimulateResponse(refusal)
			return nil
		}
		current, _ = doc.(map[string]any)
	}
	var left any // what later reads find
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
		s.keep(strings.TrimSuffix(ex.Out.Path, "/action"), left)
	}
	if left == nil && ex.Dialect.IsRun() {
		left = map[string]any{} // every answer of the run interface is JSON
	}
	if left == nil {
		ex.SimulateResponse(&filter.Response{Status: http.StatusNoContent, Header: http.Header{}, Relayed: true})
		return nil
	}
	return answer(ex, ex.Operation.SuccessStatus, left)
}

// create answers with the new object and the members that the platform adds to it.
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

func (s *sender) keep(path string, object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.simulated[path] = object
}

// stopped is a pod after a stop.
func stopped(current map[string]any, id string) map[string]any {
	if current == nil {
		current = map[string]any{"id": id}
	}
	after, err := effective.Action(current, "stop")
	if err != nil {
		return current
	}
	return recordOf(operation.KindPod, after)
}

// recordOf gives an object the members that records of its kind have and
// requests do not.
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
	default: // the translators read nothing else of the others
	}
	maps.Copy(defaults, object)
	if enabled, ok := defaults["globalNetworking"].(bool); ok && kind == operation.KindPod {
		defaults["globalNetworking"] = map[string]any{"enabled": enabled}
	}
	return defaults
}
