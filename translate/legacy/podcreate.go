package legacy

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// PodCreate holds the settings of a new pod.
type PodCreate struct {
	PodInput
	Placement
	// Template and NetworkVolume are ids, or "".
	Template, NetworkVolume  string
	Locked, GlobalNetworking bool
	// FingerprintText is the original request; see translate.Request.
	FingerprintText string
	// StopAt and TerminateAt are passed on to translate.Request.
	StopAt, TerminateAt time.Time
}

// CreatedPod is a pod that was created, possibly by an earlier attempt of the same request.
type CreatedPod struct {
	v2.Pod
	Note translate.PodNote
	// Types holds the GPU types that the placement read from the catalog, or nil.
	Types []any
}

// podCreate is the state of one CreatePod call.
type podCreate struct {
	*Session
	want PodCreate
	// template is read only if it is needed.
	template Template
	// inline reports that the template's settings are sent in place of its id.
	inline bool
	types  []any
}

// CreatePod creates a pod with the first placement candidate that is available and allowed. It returns a translate.UnfinishedError if it is
// unknown whether the pod was created; a repeat of the same request then finds the pod.
func (s *Session) CreatePod(ctx context.Context, w *PodCreate) (CreatedPod, error) {
	c := &podCreate{Session: s, want: *w}
	base, err := c.body(ctx)
	if err != nil {
		return CreatedPod{}, err
	}
	candidates, err := c.candidates(ctx, base)
	if err != nil {
		return CreatedPod{}, err
	}
	for _, candidate := range candidates {
		r := candidate.Request
		r.FingerprintText, r.StopAt, r.TerminateAt = w.FingerprintText, w.StopAt, w.TerminateAt
		r.OnLateSuccess = func(ctx context.Context, made *translate.Response) {
			c.complete(ctx, v2.PodOf(r.Body), v2.PodOf(made.Body))
		}
	}
	out := translate.RunCandidates(ctx, s.Client, candidates)
	s.Invalidate()
	for _, attempt := range out.Attempts {
		if attempt.Status == http.StatusForbidden {
			attempt.Detail = Forbidden(attempt.Detail)
		}
		if attempt.Skipped {
			s.Warn(w.TypesField, "skipped "+attempt.Label+": "+attempt.Detail)
		}
	}
	if out.Verdict != translate.Placed {
		return CreatedPod{}, c.misplaced(ctx, "create pod", c.failed(out), c.want.DataCenters...)
	}
	sent, pod := v2.PodOf(candidates[out.Index].Request.Body), v2.PodOf(out.Response.Body)
	if out.Response.FromEarlierRequest {
		sent = pod // another candidate may have created the pod
	}
	return c.complete(ctx, sent, pod), nil
}

// body returns the body of the create request without the placement.
func (c *podCreate) body(ctx context.Context) (v2.Pod, error) {
	b := v2.NewPod()
	b.SetName(c.want.Name.Value())
	if err := c.readTemplate(ctx); err != nil {
		return b, err
	}
	if err := c.mount(ctx, b); err != nil {
		return b, err
	}
	switch {
	case c.inline:
		c.template.CopyInto(b.Container)
		if c.template.StartSSH() {
			b.SetStartSSH(true)
		}
		if c.template.StartJupyter() {
			b.SetStartJupyter(true)
		}
	case c.want.Template != "":
		b.SetTemplateID(c.template.realID())
	}
	c.want.writeBasics(b.Container)
	if vars := c.want.Env.Value(); len(vars) > 0 {
		merged := translate.EnvObject(vars)
		for name, value := range b.Env() { // the template's variables
			if _, given := vars[name]; !given {
				merged[name] = value
			}
		}
		b.Members["env"] = merged
	}
	c.command(b)
	switch {
	case c.want.Registry.Value() != "" || c.want.Registry.IsSet() && c.want.Template != "" && !c.inline:
		b.SetRegistry(c.want.Registry.Value())
	case c.want.Registry.IsSet():
		delete(b.Members, "registry")
	}
	maps.Copy(b.Members, c.want.PassThrough)
	if c.want.GlobalNetworking {
		b.SetGlobalNetworking(true)
	}
	return b, nil
}

// command sets the container command. An explicitly empty part clears that part of a named template. Without a template
// it is treated as absent.
func (c *podCreate) command(b v2.Pod) {
	if !c.want.splitCommand() {
		c.want.Args.Apply(b.SetArgs)
		return
	}
	command := translate.Command{Entrypoint: c.want.Entrypoint.Value(), Cmd: c.want.Cmd.Value()}
	if c.inline { // a part that is not given comes from the template
		inherited := c.template.Command()
		command = translate.Command{Entrypoint: c.want.Entrypoint.Or(inherited.Entrypoint), Cmd: c.want.Cmd.Or(inherited.Cmd)}
		delete(b.Members, "args")
	}
	clears := c.want.Template != "" && !c.inline
	if len(command.Entrypoint) > 0 || clears && c.want.Entrypoint.IsSet() {
		b.SetEntrypoint(command.Entrypoint)
	}
	if len(command.Cmd) > 0 || clears && c.want.Cmd.IsSet() {
		b.SetCmd(command.Cmd)
	}
}

// readTemplate determines the id of the template in v2. It reads a template that v2 does not know, so that its settings
// can be sent inline.
func (c *podCreate) readTemplate(ctx context.Context) error {
	if c.want.Template == "" {
		return nil
	}
	if c.inline = c.inline || IsVirtual(c.want.Template); !c.inline {
		c.template = Template{KnownAs: c.want.Template, Note: c.TemplateNote(ctx, c.want.Template)}
		return nil
	}
	var err error
	c.template, err = c.Session.Template(ctx, referencedTemplate(c.want.Template), c.want.Template)
	return err
}

// mount sets the volume. It may switch to sending the template inline, because v2 cannot express a template without its
// volume.
func (c *podCreate) mount(ctx context.Context, b v2.Pod) error {
	size, path := c.want.VolumeGB.Value(), c.want.MountPath.Value()
	switch {
	case size < 0:
		return invalid("volumeInGb", "must not be negative")
	case c.want.NetworkVolume != "":
		return c.mountNetwork(ctx, b)
	case c.want.CPU:
		if size > 0 {
			c.WarnLost("volumeInGb", c.Quirks.NoCPUVolume)
		}
		return nil
	case size > 0:
		b.SetPersistent(c.volumeSize("volumeInGb", size), cmp.Or(c.want.MountPath.Value(), defaultPath))
		return nil
	case c.want.Template == "" || c.inline, !c.want.VolumeGB.IsSet() && !c.template.Note.NoVolume && path == "":
		return nil
	}
	var err error
	c.template, err = c.Session.Template(ctx, referencedTemplate(c.want.Template), c.want.Template)
	if err != nil {
		return err
	}
	switch have := c.template.PersistentSize(); {
	case have == 0: // no volume to change or remove
	case c.want.VolumeGB.IsSet() || c.template.Note.NoVolume:
		c.inline = true
	case path != c.template.PersistentPath():
		b.SetPersistent(c.volumeSize("volumeInGb", have), path)
	}
	return nil
}

func (c *podCreate) mountNetwork(ctx context.Context, b v2.Pod) error {
	body, err := c.Read(ctx, Purpose{Verb: "read network volume", Noun: NounVolume, BodyID: c.want.NetworkVolume},
		"getNetworkVolume", c.want.NetworkVolume)
	if err != nil {
		return err
	}
	if centre := v2.NetworkVolumeOf(body).DataCenter(); centre != "" {
		if len(c.want.DataCenters) > 0 && !slices.Contains(c.want.DataCenters, centre) {
			return invalid("networkVolumeId", "the volume is in %s, which is not in %s", centre, c.Quirks.DataCentersField)
		}
		c.want.DataCenters = []string{centre}
	}
	b.SetNetworkVolume(c.want.NetworkVolume, cmp.Or(c.want.MountPath.Value(), defaultPath))
	return nil
}

// origin returns the template whose settings are sent in place of its id, or nil.
func (c *podCreate) origin() *translate.Origin {
	if !c.inline {
		return nil
	}
	return c.template.Origin()
}

// ShortageError is returned if no capacity is available for a new pod.
type ShortageError struct {
	// Response is the platform's last response, or nil if there was no call.
	Response *translate.Response
}

// Error implements error.
func (e *ShortageError) Error() string { return "no capacity available: " + e.Response.Detail() }

// Status returns the status of the platform's last response, or 0 if there was no call.
func (e *ShortageError) Status() int {
	if e.Response == nil {
		return 0
	}
	return e.Response.Status
}

// failed returns the error for a run that placed no candidate.
func (c *podCreate) failed(out *translate.Outcome) error {
	purpose := NounPod.Purpose("create")
	switch out.Verdict {
	case translate.Unfinished:
		return out.Err
	case translate.Shortage:
		if out.Err == nil || len(out.Attempts) > 0 {
			return &ShortageError{out.Response}
		}
	case translate.Stopped:
		purpose.Noun, purpose.BodyID = c.missing(out.Response.Detail())
	case translate.Placed, translate.Broken, translate.Forbidden, translate.Refused:
	}
	return &RefusedError{purpose, out.Response, out.Err}
}

// missing determines which resource is missing if the platform responded with 404. The Noun is "" if the caller named no resource.
func (c *podCreate) missing(detail string) (Noun, string) {
	detail = strings.ToLower(detail)
	registry := c.want.Registry.Value()
	switch {
	case registry != "" && (strings.Contains(detail, "registry") || c.want.Template == "" && c.want.NetworkVolume == ""):
		return NounRegistry, registry
	case c.want.NetworkVolume != "" && (strings.Contains(detail, "volume") || c.want.Template == ""):
		return NounVolume, c.want.NetworkVolume
	case c.want.Template == "":
		return "", ""
	}
	return NounTemplate, c.want.Template
}

// complete does the remaining work after the pod has been created. From here on, failures only add warnings.
func (c *podCreate) complete(ctx context.Context, sent, pod v2.Pod) CreatedPod {
	note := newPodNote(sent)
	note.TemplateID = c.want.Template
	note.InjectedEnv = c.injected(ctx, pod)
	if c.want.Locked {
		note.LockedOnCreate = true
		b := v2.NewPod()
		b.SetLocked(true)
		body, err := c.Change(ctx, NounPod.Purpose("lock"), Call("updatePod", pod.ID(), b.Members))
		if locked := v2.PodOf(body); err == nil && locked.ID() != "" {
			pod = locked
		} else {
			c.Warn("locked", "cannot lock the pod")
		}
	}
	translate.SaveNote(ctx, c.Client, c.Key(translate.KindPod, pod.ID()), note)
	return CreatedPod{Pod: pod, Note: note, Types: c.types}
}

// injected lists the environment variables that the platform added to the pod. Neither the caller nor the template set them.
func (c *podCreate) injected(ctx context.Context, pod v2.Pod) []string {
	names := slices.DeleteFunc(slices.Clone(injectable), func(name string) bool {
		_, asked := c.want.Env.Value()[name]
		return asked || pod.Env()[name] == nil
	})
	if len(names) == 0 || c.want.Template == "" {
		return names
	}
	if c.template.Members == nil {
		var err error
		if c.template, err = c.Session.Template(ctx, NounTemplate.Purpose("get"), c.want.Template); err != nil {
			return names
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return c.template.Env()[name] != nil })
}

// Forbidden adds the prefix "Forbidden" to the message of a policy, unless the message contains this word. Clients search for it.
func Forbidden(detail string) string {
	switch {
	case detail == "":
		return "Forbidden"
	case strings.Contains(detail, "Forbidden"):
		return detail
	}
	return "Forbidden: " + detail
}
