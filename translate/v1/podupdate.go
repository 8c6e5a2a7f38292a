package v1

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/tollgate-dev/tollgate/translate"
)

// updatePod serves PATCH and POST .../update.
func updatePod(ctx context.Context, r *request) (*reply, error) {
	id := r.param("podId")
	w := about{verb: "update pod", noun: "pod"}
	u := podUpdate{request: r, patch: map[string]any{}}
	u.plain()
	if u.needsCurrent() {
		var err error
		if u.current, err = r.read(ctx, w, "getPod", id); err != nil {
			return nil, err
		}
		if err := u.mounts(); err != nil {
			return nil, err
		}
		u.env(ctx, id)
	}
	if len(u.patch) == 0 {
		if u.current == nil {
			var err error
			if u.current, err = r.read(ctx, w, "getPod", id); err != nil {
				return nil, err
			}
		}
		return ok(r.podWith(ctx, u.current, podIncludes{}, "")), nil
	}
	pod, err := u.send(ctx, u.about(w), with(byID("updatePod", id), u.patch), translate.Change)
	if err != nil {
		return nil, err
	}
	pod = u.restart(ctx, id, pod)
	return ok(r.podWith(ctx, pod, podIncludes{}, "")), nil
}

// podUpdate builds the PATCH of one update.
type podUpdate struct {
	*request
	current any // the v2 pod, read when a field depends on it
	patch   map[string]any
}

// about adds which id of the body a 404 can mean once the pod itself is known.
func (u *podUpdate) about(w about) about {
	if id := u.body.text("containerRegistryAuthId"); id != "" && u.current != nil {
		return unknown("container registry auth", id)
	}
	return w
}

// plain maps the fields that need no look at the pod.
func (u *podUpdate) plain() {
	in := u.body
	for _, f := range [...]struct{ v1, v2 string }{{"name", "name"}, {"imageName", "image"}} {
		if s := in.text(f.v1); s != "" {
			u.patch[f.v2] = s
		}
	}
	for _, name := range [...]string{"locked", "globalNetworking"} {
		if in.has(name) {
			u.patch[name] = in.flag(name)
		}
	}
	if disk := in.whole("containerDiskInGb", 0); disk > 0 {
		u.patch["disk"] = translate.Int(disk)
	}
	if in.has("ports") {
		u.patch["ports"] = translate.List(in.texts("ports"))
	}
	if in.has("containerRegistryAuthId") {
		u.patch["registry"] = nil
		if id := in.text("containerRegistryAuthId"); id != "" {
			u.patch["registry"] = id
		}
	}
	if u.api.cfg.ExecForm == ExecArrays {
		for _, f := range [...]struct{ v1, v2 string }{{"dockerEntrypoint", "entrypoint"}, {"dockerStartCmd", "cmd"}} {
			if in.has(f.v1) {
				u.patch[f.v2] = translate.List(in.texts(f.v1))
			}
		}
	}
}

// containerFields are the v1 fields after whose change v1 re-created the
// container, with the v2 members they become.
var containerFields = map[string]string{
	"imageName": "image", "containerDiskInGb": "disk", "env": "env", "ports": "ports",
	"dockerEntrypoint": "entrypoint", "dockerStartCmd": "cmd", "containerRegistryAuthId": "registry",
	"volumeInGb": "mounts", "volumeMountPath": "mounts",
}

// needsCurrent reports whether the pod as it is must be known.
func (u *podUpdate) needsCurrent() bool {
	for name := range u.body {
		if containerFields[name] != "" {
			return true
		}
	}
	return false
}

// mounts decides about volume and command, which v2 only takes whole.
func (u *podUpdate) mounts() error {
	if u.api.cfg.ExecForm == ExecArgs {
		replaceArgs(u.body, u.current, u.patch)
	}
	in := u.body
	path := in.text("volumeMountPath")
	size, sized := in.whole("volumeInGb", 0), in.has("volumeInGb")
	current := translate.Members(u.current, "mounts", "persistent")
	switch {
	case current != nil:
		return u.persistentMount(current, size, sized, path)
	case len(translate.Items(u.current, "mounts", "network")) > 0:
		if sized && size > 0 {
			u.Warn("volumeInGb", "the size of a network volume is not changed through a pod, ignored")
		}
		if path != "" && path != mountPath(u.current) {
			u.patch["mounts"] = network(volumeOf(u.current), path)
		}
	case size > 0:
		return bad("volume cannot be added to an existing pod")
	}
	return nil
}

func (u *podUpdate) persistentMount(current map[string]any, size int64, sized bool, path string) error {
	have, at := translate.Whole(current, "size"), translate.Text(current, "path")
	if path == "" {
		path = at
	}
	switch {
	case sized && size == 0:
		return bad("volume cannot be removed from an existing pod")
	case sized && size < minVolume && size != have:
		return bad("volumeInGb: must be at least %d", minVolume)
	case !sized:
		size = have
	}
	if size != have || path != at {
		u.patch["mounts"] = persistent(size, path)
	}
	return nil
}

// replaceArgs rebuilds the args text of a resource from the halves given and
// those it has.
func replaceArgs(in input, current any, patch map[string]any) {
	hasEntrypoint, hasCmd := in.has("dockerEntrypoint"), in.has("dockerStartCmd")
	if !hasEntrypoint && !hasCmd {
		return
	}
	command := translate.CommandOf(current)
	if hasEntrypoint {
		command.Entrypoint = in.texts("dockerEntrypoint")
	}
	if hasCmd {
		command.Cmd = in.texts("dockerStartCmd")
	}
	patch["args"] = command.Args()
}

// env replaces the environment but keeps the variables the platform put there,
// which the caller was never shown.
func (u *podUpdate) env(ctx context.Context, id string) {
	if !u.body.has("env") {
		return
	}
	vars := translate.EnvObject(u.body.env())
	note, known, err := translate.LoadNote[translate.PodNote](ctx, u.Dialogue, u.key(translate.KindPod, id))
	hidden := note.InjectedEnv
	switch {
	case err != nil: // nobody can tell: a variable too many breaks less than one too few
		hidden = injectable
	case !known:
		hidden = []string{"PUBLIC_KEY"}
	}
	for _, name := range hidden {
		value := translate.At(u.current, "env", name)
		if _, set := vars[name]; !set && value != nil {
			vars[name] = value
		}
	}
	u.patch["env"] = vars
}

// restart makes a running pod take a changed container, which v1 did by itself.
// A failure is a warning: the change itself was made.
func (u *podUpdate) restart(ctx context.Context, id string, after any) any {
	if !u.api.cfg.RestartAfterUpdate || u.current == nil || !u.changed() {
		return after
	}
	running := translate.Text(u.current, "status") == "RUNNING" && translate.Text(after, "status") == "RUNNING"
	if !running || translate.Text(u.current, "startedAt") != translate.Text(after, "startedAt") {
		return after
	}
	resp, err := u.Send(ctx, actionCall(id, "restart"), translate.Again)
	switch {
	case err != nil || !resp.OK():
		u.Warn("restart", "the pod was changed and must be restarted to use it")
		return after
	case translate.Text(resp.Body, "id") != "":
		return resp.Body
	}
	return after
}

// changed reports whether the patch makes a container field different from what
// it was: clients that write everything back change nothing.
func (u *podUpdate) changed() bool {
	for _, member := range containerFields {
		value, sent := u.patch[member]
		if sent && !same(value, translate.At(u.current, member)) {
			return true
		}
	}
	args, sent := u.patch["args"]
	return sent && !same(args, translate.At(u.current, "args"))
}

// same compares two decoded JSON values; an empty list or text is the same as an
// absent one.
func same(a, b any) bool { return bytes.Equal(canonical(a), canonical(b)) }

func canonical(v any) []byte {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return []byte("null")
		}
	case string:
		if v == "" {
			return []byte("null")
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
