package legacy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// PodCreate holds a caller's wishes for a new pod.
type PodCreate struct {
	PodInput
	Placement
	// Template and NetworkVolume are ids, "" for none.
	Template, NetworkVolume  string
	Locked, GlobalNetworking bool
	// FingerprintText is the request as it came: the part that its repeats have in common.
	FingerprintText string
	// StopAt and TerminateAt are those of translate.Request.
	StopAt, TerminateAt time.Time
}

// CreatedPod is a pod that was made, or found to have been.
type CreatedPod struct {
	v2.Pod
	Note translate.PodNote
	// Types are the GPU types in the catalog as they were read for the placement,
	// nil when they were not.
	Types []any
}

// podCreate is one create under way.
type podCreate struct {
	*Session
	want PodCreate
	// template is read only when something depends on it.
	template Template
	// inline tells that the template's settings are sent in place of its id.
	inline bool
	types  []any
}

// CreatePod makes a pod: on the first of the candidates that is free and allowed.
// The error is a translate.UnfinishedError when it is not known what became of a
// create; a repeat of the same request finds its pod.
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
			c.made(ctx, v2.PodOf(r.Body), v2.PodOf(made.Body))
		}
	}
	out := translate.RunCandidates(ctx, s.Client, candidates)
	s.Invalidate()
	for _, attempt := range out.Attempts {
		if attempt.Status == http.StatusForbidden {
			s.Warn(w.TypesField, attempt.Label+" skipped: "+Forbidden(attempt.Detail))
		}
	}
	if out.Verdict != translate.Placed {
		return CreatedPod{}, c.misplaced(ctx, "create pod", c.failed(out), c.want.DataCenters...)
	}
	sent, pod := v2.PodOf(candidates[out.Index].Request.Body), v2.PodOf(out.Response.Body)
	if out.Response.FromEarlierRequest {
		sent = pod // another candidate may have made it
	}
	return c.made(ctx, sent, pod), nil
}

// body is the create body without its placement.
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
	if image := c.want.Image.Value(); image != "" {
		b.SetImage(image)
	}
	if disk := c.want.Disk.Value(); disk > 0 {
		b.SetDisk(disk)
	}
	c.want.Ports.Apply(b.SetPorts)
	if vars := c.want.Env.Value(); len(vars) > 0 {
		merged := translate.EnvObject(vars)
		for name, value := range b.Env() { // of the template
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
	c.want.PassThrough.Apply(b.Object)
	if c.want.GlobalNetworking {
		b.SetGlobalNetworking(true)
	}
	return b, nil
}

// command sends the container command. An explicit empty half clears that of a
// template that is named; without a template it is the same as absent.
func (c *podCreate) command(b v2.Pod) {
	if !c.want.splitCommand() {
		c.want.Args.Apply(b.SetArgs)
		return
	}
	command := translate.Command{Entrypoint: c.want.Entrypoint.Value(), Cmd: c.want.Cmd.Value()}
	if c.inline { // the half that is not given is the template's
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

// readTemplate finds out what v2 calls the template. One that v2 does not know is
// read, to be sent inline.
func (c *podCreate) readTemplate(ctx context.Context) error {
	if c.want.Template == "" {
		return nil
	}
	if c.inline = c.inline || IsVirtual(c.want.Template); !c.inline {
		c.template = Template{KnownAs: c.want.Template, Note: c.TemplateNote(ctx, c.want.Template)}
		return nil
	}
	var err error
	c.template, err = c.Session.Template(ctx, ReferencedTemplate("read template", c.want.Template), c.want.Template)
	return err
}

// mount decides about the volume. It may find that the template cannot be used by
// its id, because v2 has no word for "the template without its volume".
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
		b.SetPersistent(c.volumeSize("volumeInGb", size), textOr(c.want.MountPath, DefaultPath))
		return nil
	case c.want.Template == "" || c.inline, !c.want.VolumeGB.IsSet() && !c.template.Note.NoVolume && path == "":
		return nil
	}
	var err error
	c.template, err = c.Session.Template(ctx, ReferencedTemplate("read template", c.want.Template), c.want.Template)
	if err != nil {
		return err
	}
	switch have := c.template.PersistentSize(); {
	case have == 0: // nothing to change or to avoid
	case c.want.VolumeGB.IsSet() || c.template.Note.NoVolume:
		c.inline = true
	case path != c.template.PersistentPath():
		b.SetPersistent(c.volumeSize("volumeInGb", have), path)
	}
	return nil
}

func (c *podCreate) mountNetwork(ctx context.Context, b v2.Pod) error {
	body, err := c.Read(ctx, Purpose{Verb: "read network volume", Noun: NounVolume, BodyID: c.want.NetworkVolume}, "getNetworkVolume", c.want.NetworkVolume)
	if err != nil {
		return err
	}
	if centre := v2.NetworkVolumeOf(body).DataCenter(); centre != "" {
		if len(c.want.DataCenters) > 0 && !slices.Contains(c.want.DataCenters, centre) {
			return invalid("networkVolumeId", "the volume is in %s, which is not among %s", centre, c.Quirks.DataCentersField)
		}
		c.want.DataCenters = []string{centre}
	}
	b.SetNetworkVolume(c.want.NetworkVolume, textOr(c.want.MountPath, DefaultPath))
	return nil
}

// origin is the template whose settings are sent in place of its id.
func (c *podCreate) origin() *translate.Origin {
	if !c.inline {
		return nil
	}
	return c.template.Origin()
}

// ShortageError is a create for which nothing is free.
type ShortageError struct {
	// Response is the platform's last answer, nil when it was not asked.
	Response *translate.Response
}

// Error implements error.
func (e *ShortageError) Error() string { return "nothing is free: " + e.Response.Detail() }

// Status is that of the platform's last answer, 0 when it was not asked.
func (e *ShortageError) Status() int {
	if e.Response == nil {
		return 0
	}
	return e.Response.Status
}

// failed returns why no candidate was placed.
func (c *podCreate) failed(out *translate.Outcome) error {
	about := NounPod.Purpose("create")
	switch out.Verdict {
	case translate.Unfinished:
		return out.Err
	case translate.Shortage:
		if out.Err == nil || len(out.Attempts) > 0 {
			return &ShortageError{out.Response}
		}
	case translate.Stopped:
		about.Noun, about.BodyID = c.missing(out.Response.Detail())
	case translate.Placed, translate.Broken, translate.Forbidden, translate.Refused:
	}
	return &RefusedError{about, out.Response, out.Err}
}

// missing is the subject of a 404 of the create.
func (c *podCreate) missing(detail string) (Noun, string) {
	detail = strings.ToLower(detail)
	registry := c.want.Registry.Value()
	switch {
	case registry != "" && (strings.Contains(detail, "registry") || c.want.Template == "" && c.want.NetworkVolume == ""):
		return NounRegistry, registry
	case c.want.NetworkVolume != "" && (strings.Contains(detail, "volume") || c.want.Template == ""):
		return NounVolume, c.want.NetworkVolume
	}
	return NounTemplate, c.want.Template
}

// made finishes a create whose pod exists: nothing after this point may turn it
// into a failure.
func (c *podCreate) made(ctx context.Context, sent, pod v2.Pod) CreatedPod {
	note := NewPodNote(sent)
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
			c.Warn("locked", "the pod could not be locked")
		}
	}
	translate.SaveNote(ctx, c.Client, c.Key(translate.KindPod, pod.ID()), note)
	return CreatedPod{Pod: pod, Note: note, Types: c.types}
}

// injected names the variables that the platform added to the pod: those that
// neither the caller asked for nor the template has.
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

// Forbidden keeps the words of a policy; clients look for "Forbidden".
func Forbidden(detail string) string {
	switch {
	case detail == "":
		return "Forbidden"
	case strings.Contains(detail, "Forbidden"):
		return detail
	}
	return "Forbidden: " + detail
}
