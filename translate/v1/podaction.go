package v1

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// effect is what an action comes to for a pod in some status.
type effect int

const (
	refuse effect = iota
	nothing
	doStart
	doRestart
)

// podVerb is one of v1's pod actions.
type podVerb struct {
	name string
	// action is sent first, without a look: v2 answers 409 when it does not fit.
	action string
	// intent is the desiredStatus of the answer.
	intent string
	// onConflict says what to do after a 409, by v2 status.
	onConflict map[string]effect
	// refusal is the text of a status that is not listed.
	refusal string
}

// The actions. restart of a failed pod starts it, as v1 did.
var (
	verbStart = podVerb{name: "start pod", action: "start", intent: translate.Running, onConflict: map[string]effect{
		"RUNNING": nothing, "PROVISIONING": nothing, "STARTING": nothing,
	}}
	verbStop = podVerb{name: "stop pod", action: "stop", intent: translate.Exited, onConflict: map[string]effect{
		"EXITED": nothing, "ERROR": nothing,
	}}
	verbRestart = podVerb{name: "restart pod", action: "restart", refusal: "pod is not running", onConflict: map[string]effect{
		"PROVISIONING": nothing, "STARTING": nothing, "ERROR": doStart,
	}}
)

func startPod(ctx context.Context, r *request) (*reply, error) { return r.act(ctx, verbStart) }

func stopPod(ctx context.Context, r *request) (*reply, error) { return r.act(ctx, verbStop) }

func restartPod(ctx context.Context, r *request) (*reply, error) { return r.act(ctx, verbRestart) }

func (v podVerb) about() about { return about{verb: v.name, noun: "pod", places: true} }

// act sends the action first and reads the pod only when v2 says that it does
// not fit its status: v1 took most of those as done already.
func (r *request) act(ctx context.Context, v podVerb) (*reply, error) {
	id := r.param("podId")
	resp, err := r.Send(ctx, actionCall(id, v.action), translate.Again)
	if err == nil && resp.Status == http.StatusConflict {
		return r.conflict(ctx, v, id, resp)
	}
	if err != nil || !resp.OK() {
		return nil, r.api.refused(v.about(), resp, err)
	}
	return r.acted(ctx, v, id, resp.Body)
}

func actionCall(id, action string) *translate.Request {
	return with(byID("podAction", id), map[string]any{"action": action})
}

// acted answers with the pod of the action, or reads it when v2 sent none:
// clients decode the body of every action.
func (r *request) acted(ctx context.Context, v podVerb, id string, pod any) (*reply, error) {
	if translate.Text(pod, "id") == "" {
		var err error
		if pod, err = r.read(ctx, v.about(), "getPod", id); err != nil {
			return nil, err
		}
	}
	return ok(r.podWith(ctx, pod, podIncludes{}, v.intent)), nil
}

func (r *request) conflict(ctx context.Context, v podVerb, id string, refusal *translate.Response) (*reply, error) {
	pod, err := r.read(ctx, v.about(), "getPod", id)
	if err != nil {
		return nil, err
	}
	effect, listed := v.onConflict[translate.Text(pod, "status")]
	switch {
	case effect == doStart:
		body, err := r.send(ctx, v.about(), actionCall(id, "start"), translate.Again)
		if err != nil {
			return nil, err
		}
		return r.acted(ctx, v, id, body)
	case listed:
		return ok(r.podWith(ctx, pod, podIncludes{}, "")), nil
	case translate.Flag(pod, "locked"):
		return nil, bad("pod is locked")
	case v.refusal != "":
		return nil, bad("%s", v.refusal)
	}
	return nil, r.api.refused(v.about(), refusal, nil)
}

// resetPod has no v2 action. A restart wipes the container's disk as a reset
// did; stop and start would give the GPU up.
func resetPod(ctx context.Context, r *request) (*reply, error) {
	id := r.param("podId")
	v := podVerb{name: "reset pod", onConflict: verbRestart.onConflict}
	pod, err := r.read(ctx, v.about(), "getPod", id)
	if err != nil {
		return nil, err
	}
	if translate.Flag(pod, "locked") {
		return nil, bad("pod is locked")
	}
	switch translate.Text(pod, "status") {
	case "PROVISIONING", "STARTING":
		return ok(r.podWith(ctx, pod, podIncludes{}, "")), nil
	case "EXITED", "ERROR":
		v.action, v.intent = "start", translate.Running
	case "TERMINATED":
		return nil, &fault{status: http.StatusNotFound, text: "pod not found"}
	default:
		v.action = "restart"
	}
	return r.act(ctx, v)
}
