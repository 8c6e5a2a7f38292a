package graphql

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate"
)

// podEditJob changes a pod. Arguments left out leave things as they are.
func podEditJob(ctx context.Context, x *exchange, in input) (any, error) {
	id, err := podID(in)
	if err != nil {
		return nil, err
	}
	a := in.object("input")
	before, err := x.fetch(ctx, "getPod", id, kindPod)
	if err != nil {
		return nil, err
	}
	change, err := x.podChange(ctx, a, &pod{body: before})
	if err != nil {
		return nil, err
	}
	if len(change) == 0 {
		return &pod{body: before}, nil
	}
	after, err := x.change(ctx, "updatePod", id, change, kindPod)
	if err != nil {
		return nil, err
	}
	if translate.Members(after) == nil {
		if after, err = x.fetch(ctx, "getPod", id, kindPod); err != nil {
			return nil, err
		}
	}
	return &pod{body: x.restarted(ctx, before, after, change)}, nil
}

func (x *exchange) podChange(ctx context.Context, a args, p *pod) (map[string]any, error) {
	change := map[string]any{}
	set(change, "name", a.text("name"))
	set(change, "image", a.text("imageName"))
	if a.has("dockerArgs") {
		change["args"] = a.text("dockerArgs")
	}
	if a.has("containerRegistryAuthId") {
		change["registry"] = orNull(a.text("containerRegistryAuthId"))
	}
	if n, _ := a.int("containerDiskInGb"); n > 0 {
		change["disk"] = translate.Int(n)
	}
	if port, _ := a.int("port"); a.has("ports") || port > 0 {
		change["ports"] = translate.List(portList(a))
	}
	if a.has("env") {
		change["env"] = x.keepInjected(ctx, p, envOf(a.list("env")))
	}
	mounts, err := mountChange(x, a, p)
	if mounts != nil {
		change["mounts"] = mounts
	}
	return change, err
}

// keepInjected adds the variables the platform put into the pod itself: callers
// who write their own list back never saw them as theirs.
func (x *exchange) keepInjected(ctx context.Context, p *pod, env map[string]any) map[string]any {
	n, known, err := x.podNote(ctx, p)
	names := n.InjectedEnv
	switch {
	case err != nil: // nobody can tell: a variable too many breaks less than one too few
		names = []string{"JUPYTER_PASSWORD", "PUBLIC_KEY"}
	case !known:
		names = []string{"PUBLIC_KEY"}
	}
	for _, name := range names {
		value, now := translate.At(p.body, "env", name).(string)
		if _, given := env[name]; now && !given {
			env[name] = value
		}
	}
	return env
}

// mountChange says what becomes of the pod's volume, nil for nothing.
func mountChange(x *exchange, a args, p *pod) (map[string]any, error) {
	size, sized := a.int("volumeInGb")
	at := a.text("volumeMountPath")
	current := translate.Whole(p.body, "mounts", "persistent", "size")
	switch network := p.network(); {
	case network != nil:
		if sized && size > 0 {
			x.Warn("volumeInGb", "ignored, the pod has a network volume")
		}
		if at == "" || at == translate.Text(network, "path") {
			return nil, nil
		}
		return map[string]any{"network": []any{map[string]any{"volumeId": translate.Text(network, "volumeId"), "path": at}}}, nil
	case current == 0 && size > 0:
		return nil, badInput("volume cannot be added to an existing pod")
	case current == 0:
		return nil, nil
	case !sized:
		size = current
	case size == 0:
		return nil, badInput("volume cannot be removed from an existing pod")
	case size < 10:
		return nil, badInput("volumeInGb must be at least 10")
	}
	if size == current && (at == "" || at == p.mountPath()) {
		return nil, nil
	}
	return map[string]any{"persistent": map[string]any{"size": translate.Int(size), "path": orElse(at, p.mountPath())}}, nil
}

// restarted restarts a running pod whose container settings changed and that
// the platform left as it was. It returns the pod to answer with.
func (x *exchange) restarted(ctx context.Context, before, after any, change map[string]any) any {
	if !x.config().RestartAfterEdit || translate.Text(before, "status") != "RUNNING" ||
		translate.Text(after, "status") != "RUNNING" || translate.Text(before, "startedAt") != translate.Text(after, "startedAt") {
		return after
	}
	if len(change) == 1 && change["name"] != nil {
		return after // all else that can change is the container's
	}
	p, err := x.act(ctx, translate.Text(before, "id"), actionRestart)
	if err != nil {
		x.Warn("podEditJob", "the pod was changed but could not be restarted")
		return after
	}
	if q, ok := p.(*pod); ok {
		return q.body
	}
	return after
}
