package legacy

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// injectable lists the environment variables that the platform adds to pods.
var injectable = []string{"JUPYTER_PASSWORD", "PUBLIC_KEY"}

// PodNote returns the stored PodNote of a pod. known is false if the store lacks the note. It returns an error if the store fails.
func (s *Session) PodNote(ctx context.Context, id string) (note translate.PodNote, known bool, err error) {
	return translate.LoadNote[translate.PodNote](ctx, s.Client, s.Key(translate.KindPod, id))
}

// TemplateIDOfPod returns the id of the template that a pod was created from, or "" if it is unknown.
func TemplateIDOfPod(p v2.Pod, note translate.PodNote) string {
	return cmp.Or(note.TemplateID, p.Template())
}

// LastStatusChange returns the sentence with which the legacy APIs described the last status change of a worker. It returns "" if the time
// of the change is unknown.
func LastStatusChange(p v2.Pod) string {
	return string(AppendLastStatusChange(make([]byte, 0, 96), p))
}

// AppendLastStatusChange appends the result of LastStatusChange.
func AppendLastStatusChange(buf []byte, p v2.Pod) []byte {
	what, when := "Rented by User: ", cmp.Or(p.CreatedAt(), p.StartedAt())
	switch p.Status() {
	case v2.StatusExited:
		what, when = "Exited by User: ", cmp.Or(p.StartedAt(), when)
	case v2.StatusError:
		what, when = "Exited with error: ", cmp.Or(p.StartedAt(), when)
	}
	if when == "" {
		return buf
	}
	return translate.AppendTime(append(buf, what...), when, translate.ScriptTime)
}

// Pods lists the account's pods. Each is a Record or a map.
func (s *Session) Pods(ctx context.Context) ([]any, error) {
	return s.list(ctx, Purpose{Verb: "list pods", Noun: NounPod}, &translate.Request{Operation: "listPods", Read: true}, "pods")
}

// AllPods lists the account's pods, including members of clusters.
func (s *Session) AllPods(ctx context.Context) ([]any, error) {
	all := &translate.Request{Operation: "listPods", Query: url.Values{"includeClusterPods": {"true"}}, Read: true}
	return s.list(ctx, Purpose{Verb: "listPods", Noun: NounPod}, all, "pods")
}

// Pod reads one pod.
func (s *Session) Pod(ctx context.Context, id string) (v2.Pod, error) {
	body, err := s.Read(ctx, NounPod.Purpose("get"), "getPod", id)
	return v2.PodOf(body), err
}

// PodNotes returns the stored PodNote of each listed pod, by pod id. The map is never nil. For a pod without a PodNote, it stores one,
// because billing needs the GPU type after the deletion of the pod.
func (s *Session) PodNotes(ctx context.Context, listed []any) map[string]translate.PodNote {
	return notesOf(ctx, s, translate.KindPod, listed, func(body any) (translate.PodNote, bool) {
		p := v2.PodOf(body)
		return newPodNote(p), p.Status() != v2.StatusTerminated
	})
}

// DeletePod deletes a pod. It keeps the stored PodNote, because billing needs the GPU type later.
func (s *Session) DeletePod(ctx context.Context, id string) error {
	return s.Remove(ctx, Purpose{Verb: "delete pod", Noun: NounTerminated}, "deletePod", id)
}

// Action is a v2 action on a pod.
type Action string

// The actions of v2.
const (
	Start   Action = "start"
	Stop    Action = "stop"
	Restart Action = "restart"
)

// DesiredStatus returns the desiredStatus of a pod after the action.
func (a Action) DesiredStatus() string {
	if a == Stop {
		return translate.Exited
	}
	return translate.Running
}

// done reports whether the action has no effect on a pod with the given status.
func (a Action) done(status string) bool {
	switch a {
	case Stop:
		return status == v2.StatusExited || status == v2.StatusError
	case Start:
		return status == v2.StatusRunning || starting(status)
	case Restart:
	}
	return starting(status)
}

func starting(status string) bool {
	return status == v2.StatusProvisioning || status == v2.StatusStarting
}

// PerformAction performs an action on a pod. If v2 reports a conflict with the status of the pod, PerformAction reads the pod and succeeds
// if the action would have no effect, as it did in the legacy APIs.
func (s *Session) PerformAction(ctx context.Context, id string, a Action) (v2.Pod, error) {
	return s.act(ctx, NounPod.Purpose(string(a)), id, a)
}

func (s *Session) act(ctx context.Context, purpose Purpose, id string, a Action) (v2.Pod, error) {
	purpose.MayBeShortage = true
	resp, err := s.Send(ctx, Call("podAction", id, map[string]any{"action": string(a)}), translate.RetryAction)
	s.Invalidate()
	refusal := &RefusedError{purpose, resp, err}
	if err != nil || !resp.OK() && resp.Status != 409 {
		return v2.Pod{}, refusal
	}
	switch p := v2.PodOf(resp.Body); {
	case resp.OK() && p.ID() != "":
		return p, nil
	case resp.OK() && resp.Status != http.StatusNoContent:
		return v2.Pod{}, UnusableResponse(purpose)
	}
	body, err := s.Read(ctx, purpose, "getPod", id)
	p := v2.PodOf(body)
	switch {
	case err != nil || resp.OK() || a.done(p.Status()):
		return p, err
	case p.Locked():
		return p, invalid("", "pod is locked")
	case a == Restart && p.Status() == v2.StatusExited:
		return p, invalid("", "pod is not running")
	case a == Restart && p.Status() == v2.StatusError: // Start also restarts a failed pod
		return s.act(ctx, purpose, id, Start)
	}
	return p, refusal
}

// ResetPod wipes the container disk of a pod and keeps the volume and the GPU. It restarts a running pod, because a stop would release the
// GPU.
func (s *Session) ResetPod(ctx context.Context, id string) (v2.Pod, error) {
	purpose := NounPod.Purpose("reset")
	body, err := s.Read(ctx, purpose, "getPod", id)
	p := v2.PodOf(body)
	switch status := p.Status(); {
	case err != nil || starting(status):
		return p, err
	case p.Locked():
		return p, invalid("", "pod is locked")
	case status == v2.StatusExited || status == v2.StatusError:
		return s.act(ctx, purpose, id, Start)
	case status == v2.StatusTerminated:
		return p, &RefusedError{purpose, &translate.Response{Status: 404}, nil}
	}
	return s.act(ctx, purpose, id, Restart)
}

// newPodNote returns a PodNote with the GPU type of a pod.
func newPodNote(p v2.Pod) translate.PodNote {
	note := translate.PodNote{GPUTypeID: p.GPU(), GPUCount: p.GPUCount()}
	if p.IsCPU() {
		note.GPUTypeID = CPUType
	}
	return note
}

// CPUType is the GPU type in billing records of pods without a GPU.
const CPUType = "CPU"

// keepInjected adds the environment variables that the platform had added to the pod to the new environment env, and returns their names.
// Callers who write back their own list never saw these variables. If the caller sets such a variable, it belongs to the caller from then
// on.
func (s *Session) keepInjected(now v2.Pod, env map[string]any, note translate.PodNote, err error) []string {
	names := note.InjectedEnv
	switch {
	case err != nil: // an extra variable does less harm than a missing one
		names = injectable
	case names == nil: // unknown
		names = []string{"PUBLIC_KEY"}
	}
	kept := []string{}
	for _, name := range names {
		if _, given := env[name]; given {
			continue
		}
		if value, present := now.Env()[name]; present {
			env[name] = value
			kept = append(kept, name)
		}
	}
	return kept
}
