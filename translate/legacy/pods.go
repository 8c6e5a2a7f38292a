package legacy

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// injectable are the variables that the platform adds to pods by itself.
var injectable = []string{"JUPYTER_PASSWORD", "PUBLIC_KEY"}

// PodNote reads the note of a pod; known is false when nothing is. An error means that the
// store cannot tell.
func (s *Session) PodNote(ctx context.Context, id string) (note translate.PodNote, known bool, err error) {
	return translate.LoadNote[translate.PodNote](ctx, s.Client, s.Key(translate.KindPod, id))
}

// TemplateIDOfPod is the template that a pod was made from, "" when that is not
// known.
func TemplateIDOfPod(p v2.Pod, note translate.PodNote) string {
	return cmp.Or(note.TemplateID, p.Template())
}

// LastStatusChange is the sentence the retired interfaces showed to people, ""
// for a worker of which no time is known.
func LastStatusChange(p v2.Pod) string {
	return string(AppendLastStatusChange(make([]byte, 0, 96), p))
}

// AppendLastStatusChange appends LastStatusChange.
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

// Pods lists the account's pods, which are Records or maps.
func (s *Session) Pods(ctx context.Context) ([]any, error) {
	return s.list(ctx, Purpose{Verb: "list pods", Noun: NounPod}, &translate.Request{Operation: "listPods", Read: true}, "pods")
}

// AllPods is Pods with the members of clusters. verb is for the words of a refusal.
func (s *Session) AllPods(ctx context.Context, verb string) ([]any, error) {
	all := &translate.Request{Operation: "listPods", Query: url.Values{"includeClusterPods": {"true"}}, Read: true}
	return s.list(ctx, Purpose{Verb: verb, Noun: NounPod}, all, "pods")
}

// Pod reads one pod.
func (s *Session) Pod(ctx context.Context, id string) (v2.Pod, error) {
	body, err := s.Read(ctx, NounPod.Purpose("get"), "getPod", id)
	return v2.PodOf(body), err
}

// PodNotes returns the notes of listed pods by id, never nil. A pod that is seen for the
// first time gets a note: billing asks for the GPU types of pods after they are gone.
func (s *Session) PodNotes(ctx context.Context, listed []any) map[string]translate.PodNote {
	notes, err := translate.FindNotes[translate.PodNote](ctx, s.Client, translate.KindPod, IDs(listed))
	fresh := make(map[string]translate.PodNote)
	for _, body := range listed {
		p := v2.PodOf(body)
		if _, seen := notes[p.ID()]; !seen && p.ID() != "" && p.Status() != v2.StatusTerminated {
			fresh[p.ID()] = NewPodNote(p)
			notes[p.ID()] = fresh[p.ID()]
		}
	}
	if err == nil {
		translate.AddNotes(ctx, s.Client, translate.KindPod, fresh)
	}
	return notes
}

// DeletePod deletes a pod. Its note stays: billing asks for its GPU type later.
func (s *Session) DeletePod(ctx context.Context, id string) error {
	return s.Remove(ctx, Purpose{Verb: "delete pod", Noun: NounTerminated}, "deletePod", id)
}

// Action is an action on a pod.
type Action string

// The actions of v2.
const (
	Start   Action = "start"
	Stop    Action = "stop"
	Restart Action = "restart"
)

// DesiredStatus is the desiredStatus of a pod that was told to do it.
func (a Action) DesiredStatus() string {
	if a == Stop {
		return translate.Exited
	}
	return translate.Running
}

// done reports whether there is nothing to do for a pod of the status.
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

// PerformAction tells a pod to do something. The pod is read only when v2 says that it does
// not fit its status: the retired interfaces took most of those as done already.
func (s *Session) PerformAction(ctx context.Context, id string, a Action) (v2.Pod, error) {
	return s.act(ctx, NounPod.Purpose(string(a)), id, a)
}

func (s *Session) act(ctx context.Context, about Purpose, id string, a Action) (v2.Pod, error) {
	about.MayBeShortage = true
	resp, err := s.Send(ctx, Call("podAction", id, map[string]any{"action": string(a)}), translate.RetryAction)
	s.Invalidate()
	refusal := &RefusedError{about, resp, err}
	if err != nil || !resp.OK() && resp.Status != 409 {
		return v2.Pod{}, refusal
	}
	switch p := v2.PodOf(resp.Body); {
	case resp.OK() && p.ID() != "":
		return p, nil
	case resp.OK() && resp.Status != http.StatusNoContent:
		return v2.Pod{}, UnusableResponse(about)
	}
	body, err := s.Read(ctx, about, "getPod", id)
	p := v2.PodOf(body)
	switch {
	case err != nil || resp.OK() || a.done(p.Status()):
		return p, err
	case p.Locked():
		return p, invalid("", "pod is locked")
	case a == Restart && p.Status() == v2.StatusExited:
		return p, invalid("", "pod is not running")
	case a == Restart && p.Status() == v2.StatusError: // which starts it
		return s.act(ctx, about, id, Start)
	}
	return p, refusal
}

// ResetPod wipes the container disk and keeps volume and GPU, as a restart does in v2;
// stop and start would give the GPU away.
func (s *Session) ResetPod(ctx context.Context, id string) (v2.Pod, error) {
	about := NounPod.Purpose("reset")
	body, err := s.Read(ctx, about, "getPod", id)
	p := v2.PodOf(body)
	switch status := p.Status(); {
	case err != nil || starting(status):
		return p, err
	case p.Locked():
		return p, invalid("", "pod is locked")
	case status == v2.StatusExited || status == v2.StatusError:
		return s.act(ctx, about, id, Start)
	case status == v2.StatusTerminated:
		return p, &RefusedError{about, &translate.Response{Status: 404}, nil}
	}
	return s.act(ctx, about, id, Restart)
}

// NewPodNote is the note of a pod that was made elsewhere: billing asks for its GPU type
// after it is gone.
func NewPodNote(p v2.Pod) translate.PodNote {
	note := translate.PodNote{GPUTypeID: p.GPU(), GPUCount: p.GPUCount()}
	if p.IsCPU() {
		note.GPUTypeID = CPUType
	}
	return note
}

// CPUType is the GPU type that billing files pods without a GPU under.
const CPUType = "CPU"

// keepInjected adds the variables that the platform put into the pod itself to an
// environment that shall replace the pod's, and returns their names: callers who
// write their own list back never saw them as theirs. A variable that the caller
// sets is the caller's from then on.
func (s *Session) keepInjected(now v2.Pod, env map[string]any, note translate.PodNote, err error) []string {
	names := note.InjectedEnv
	switch {
	case err != nil: // a variable too many breaks less than one too few
		names = injectable
	case names == nil: // not known
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
