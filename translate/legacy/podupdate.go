package legacy

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// PodInput holds a caller's settings of a pod, or those that a pod and a template share.
type PodInput struct {
	Container
	PassThrough
	Name, MountPath Optional[string]
	VolumeGB        Optional[int64]
}

// recreates reports whether the input contains container settings.
func (w *PodInput) recreates() bool {
	return w.Image.IsSet() || w.Args.IsSet() || w.splitCommand() || w.Disk.IsSet() || w.Ports.IsSet() || w.Env.IsSet() ||
		w.Registry.IsSet() || w.VolumeGB.IsSet() || w.MountPath.IsSet()
}

// UpdatePod updates a pod. Settings that the input omits stay unchanged.
func (s *Session) UpdatePod(ctx context.Context, id string, w *PodInput) (v2.Pod, error) {
	p := patch{purpose: NounPod.Purpose("update"), read: "getPod", update: "updatePod", id: id}
	var current map[string]any
	if w.recreates() {
		var err error
		if current, err = s.Read(ctx, p.purpose, p.read, id); err != nil {
			return v2.Pod{}, err
		}
		if registry := w.Registry.Value(); registry != "" {
			p.purpose.Noun, p.purpose.BodyID = NounRegistry, registry
		}
	}
	b, now := v2.NewPod(), v2.PodOf(current)
	w.Entrypoint.Apply(b.SetEntrypoint) // v2 stores the parts of a pod's command separately
	w.Cmd.Apply(b.SetCmd)
	container := w.Container
	container.Entrypoint, container.Cmd = Optional[[]string]{}, Optional[[]string]{}
	container.WriteUpdate(b.Container, now.Container)
	if name := w.Name.Value(); name != "" {
		b.SetName(name)
	}
	maps.Copy(b.Members, w.PassThrough)
	if err := s.changeMount(w, b, now); err != nil {
		return now, err
	}
	remember := func() {}
	if w.Env.IsSet() {
		note, _, err := s.PodNote(ctx, id)
		kept := s.keepInjected(now, b.Env(), note, err)
		remember = func() {
			if !slices.Equal(kept, note.InjectedEnv) || note.InjectedEnv == nil {
				note.InjectedEnv = kept
				translate.SaveNote(ctx, s.Client, s.Key(translate.KindPod, id), note)
			}
		}
	}
	body, err := s.apply(ctx, &p, b.Members, current)
	if err != nil {
		return now, err
	}
	remember()
	after := v2.PodOf(body)
	if after.ID() == "" {
		if after, err = s.Pod(ctx, id); err != nil {
			return now, err
		}
	}
	if recreated(b, now) {
		after = s.restartEdited(ctx, now, after)
	}
	return after, nil
}

// changeMount updates the volume. v2 accepts the mounts of a pod only as a whole.
func (s *Session) changeMount(w *PodInput, b, now v2.Pod) error {
	size, sized := w.VolumeGB.Get()
	have, path := now.PersistentSize(), w.MountPath.Value()
	volume, at := now.NetworkVolume()
	switch {
	case volume != "":
		if size > 0 {
			s.WarnLost("volumeInGb", "ignored because the size of a network volume cannot be changed through a pod")
		}
		if path != "" && path != at {
			b.SetNetworkVolume(volume, path)
		}
	case have == 0 && size > 0:
		return invalid("", "volume cannot be added to an existing pod")
	case have == 0:
	case sized && size == 0:
		return invalid("", "volume cannot be removed from an existing pod")
	case sized && size < minVolumeGB && size != have:
		return invalid("volumeInGb", "must be at least %d", minVolumeGB)
	default:
		size, path = cmp.Or(size, have), cmp.Or(path, now.PersistentPath())
		if size != have || path != now.PersistentPath() {
			b.SetPersistent(size, path)
		}
	}
	return nil
}

// recreated reports whether an update changes the container. Clients that write back all settings often change nothing.
func recreated(b, now v2.Pod) bool {
	for name, value := range b.Members {
		switch name {
		case "name", "locked", "globalNetworking":
			continue
		}
		was := now.Members[name]
		if !reflect.DeepEqual(value, was) && (!empty(value) || !empty(was)) {
			return true
		}
	}
	return false
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// restartEdited restarts a running pod so that a container change takes effect, as in the legacy APIs. A failure is a
// warning, because the update has been made.
func (s *Session) restartEdited(ctx context.Context, before, after v2.Pod) v2.Pod {
	if before.Status() != v2.StatusRunning || after.Status() != v2.StatusRunning || before.StartedAt() != after.StartedAt() {
		return after
	}
	restarted, err := s.PerformAction(ctx, after.ID(), Restart)
	if err != nil {
		s.Warn("restart", "restart the pod to apply the change")
		return after
	}
	return restarted
}
