package graphql

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// action is what podAction is asked to do.
type action string

// The actions the lifecycle mutations become.
const (
	actionStop    action = "stop"
	actionStart   action = "start"
	actionRestart action = "restart"
)

// done reports whether there is nothing to do for a pod of the status.
func (a action) done(status string) bool {
	switch a {
	case actionStop:
		return status == "EXITED" || status == "ERROR"
	case actionStart:
		return status == "RUNNING" || starting(status)
	default:
		return starting(status)
	}
}

// status is the desiredStatus of the answer.
func (a action) status() string {
	if a == actionStop {
		return translate.Exited
	}
	return translate.Running
}

func starting(status string) bool { return status == "PROVISIONING" || status == "STARTING" }

func podID(in input) (string, error) {
	id := in.object("input").text("podId")
	if id == "" {
		return "", badInput("podId is required")
	}
	return id, nil
}

func podStop(ctx context.Context, x *exchange, in input) (any, error) {
	id, err := podID(in)
	if err != nil {
		return nil, err
	}
	return x.act(ctx, id, actionStop)
}

func podRestart(ctx context.Context, x *exchange, in input) (any, error) {
	id, err := podID(in)
	if err != nil {
		return nil, err
	}
	return x.act(ctx, id, actionRestart)
}

// podResume starts a stopped pod. A pod keeps its host and its GPUs, so asking
// for others is refused rather than ignored.
func podResume(ctx context.Context, x *exchange, in input) (any, error) {
	id, err := podID(in)
	if err != nil {
		return nil, err
	}
	a := in.object("input")
	accept, err := cudaOf(a)
	if err != nil {
		return nil, err
	}
	count, _ := a.int("gpuCount")
	if count == 0 && accept.any() {
		return x.act(ctx, id, actionStart)
	}
	b, err := x.fetch(ctx, "getPod", id, kindPod)
	if err != nil {
		return nil, err
	}
	p := &pod{body: b, status: translate.Running}
	if count != 0 && count != translate.Whole(b, "gpu", "count") {
		return nil, badInput("gpuCount of an existing pod cannot be changed")
	}
	if v := p.text("cudaVersion"); v != "" && !accept.allows(v) {
		return nil, badInput("no host with an allowed CUDA version")
	}
	if actionStart.done(p.text("status")) {
		return p, nil
	}
	return x.act(ctx, id, actionStart)
}

// podReset wipes the container disk and keeps volume and GPU, which is what a
// restart does in v2; stop and start would give the GPU away.
func podReset(ctx context.Context, x *exchange, in input) (any, error) {
	id, err := podID(in)
	if err != nil {
		return nil, err
	}
	b, err := x.fetch(ctx, "getPod", id, kindPod)
	if err != nil {
		return nil, err
	}
	p := &pod{body: b, status: translate.Running}
	switch status := p.text("status"); {
	case translate.Flag(b, "locked"):
		return nil, badInput("pod is locked")
	case starting(status):
		return p, nil
	case status == "RUNNING":
		return x.act(ctx, id, actionRestart)
	}
	return x.act(ctx, id, actionStart)
}

// act sends the action and, when it does not fit the pod's status, finds out
// whether there was anything to do.
func (x *exchange) act(ctx context.Context, id string, a action) (any, error) {
	resp, err := x.Send(ctx, request("podAction", id, map[string]any{"action": string(a)}, nil), translate.Again)
	x.Forget()
	switch {
	case err != nil:
		return nil, err
	case resp.Status == http.StatusConflict:
		return x.conflict(ctx, id, a, resp)
	case resp.Status == http.StatusBadRequest && translate.IsCapacity(resp.Detail()):
		f := refusal(resp, kindPod)
		f.code = codeNoCapacity
		return nil, f
	case !resp.OK():
		return nil, refusal(resp, kindPod)
	}
	b := resp.Body
	if translate.Members(b) == nil {
		if b, err = x.fetch(ctx, "getPod", id, kindPod); err != nil {
			return nil, err
		}
	}
	return &pod{body: b, status: a.status()}, nil
}

func (x *exchange) conflict(ctx context.Context, id string, a action, refused *translate.Response) (any, error) {
	b, err := x.fetch(ctx, "getPod", id, kindPod)
	if err != nil {
		return nil, err
	}
	status := translate.Text(b, "status")
	switch {
	case a.done(status):
		return &pod{body: b, status: a.status()}, nil
	case translate.Flag(b, "locked"):
		return nil, badInput("pod is locked")
	case a == actionRestart && status == "EXITED":
		return nil, badInput("pod is not running")
	case a == actionRestart && status == "ERROR":
		return x.act(ctx, id, actionStart)
	}
	return nil, refusal(refused, kindPod)
}

func podTerminate(ctx context.Context, x *exchange, in input) (any, error) {
	id, err := podID(in)
	if err != nil {
		return nil, err
	}
	return nil, x.Remove(ctx, legacy.About{Verb: "delete pod", Noun: kindTerminate}, "deletePod", id)
}
