package v1

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// podCreate builds the v2 bodies of one POST /v1/pods.
type podCreate struct {
	*request
	templateID string
	cpu        bool
	cloud      string
	// template is the v2 template, read only when a field depends on it.
	template any
	// inline tells that the template's fields are sent instead of its id.
	inline bool
	// types is the GPU catalog read for the placement, nil when it could not be.
	types []any
	// pin is the data centre of the network volume, the only place for the pod.
	pin string
}

func createPod(ctx context.Context, r *request) (*reply, error) {
	c := &podCreate{request: r, templateID: r.body.text("templateId"), cloud: r.body.textOr("cloudType", "SECURE")}
	if fault := c.refuse(); fault != nil {
		return nil, fault
	}
	if reply, err := c.resume(ctx); reply != nil || err != nil {
		return reply, err
	}
	c.warnDropped()
	base, err := c.base(ctx)
	if err != nil {
		return nil, err
	}
	candidates, err := c.candidates(ctx, base)
	if err != nil {
		return nil, err
	}
	plan := translate.PodPlan(r.Dialogue, candidates)
	plan.Outlive = c.outlive
	outcome := translate.RunCandidates(ctx, r.Dialogue, plan)
	c.warnSkipped(outcome)
	if outcome.Verdict != translate.Placed {
		return nil, c.failed(outcome)
	}
	return c.created(ctx, candidates[outcome.Index], outcome.Response.Body)
}

// refuse turns down what cannot be had any more or contradicts itself.
func (c *podCreate) refuse() *fault {
	in := c.body
	c.cpu = in.text("computeType") == "CPU" ||
		!in.has("computeType") && len(in.texts("cpuFlavorIds")) > 0 && len(in.texts("gpuTypeIds")) == 0
	switch {
	case in.flag("interruptible"):
		return bad("create pod: Spot pods are no longer offered")
	case c.templateID == "" && in.text("imageName") == "":
		return bad("imageName is required")
	case in.text("dockerArgs") != "" && (len(in.texts("dockerStartCmd")) > 0 || len(in.texts("dockerEntrypoint")) > 0):
		return bad("dockerArgs cannot be combined with dockerStartCmd or dockerEntrypoint")
	}
	return nil
}

// warnDropped tells of the placement wishes v2 has no form for.
func (c *podCreate) warnDropped() {
	for _, name := range [...]string{"minDownloadMbps", "minUploadMbps", "minDiskBandwidthMBps"} {
		if c.body.has(name) {
			c.Warn(name, "not supported any more, ignored")
		}
	}
	if c.body.flag("supportPublicIp") && c.cloud == "COMMUNITY" {
		c.Warn("supportPublicIp", "cannot be asked for on the community cloud any more, ignored")
	}
}

// base is the create body without its placement.
func (c *podCreate) base(ctx context.Context) (map[string]any, error) {
	in := c.body
	body := map[string]any{"name": in.textOr("name", defaultName), "cloud": c.cloud}
	if err := c.mounts(ctx, body); err != nil {
		return nil, err
	}
	if c.templateID != "" && !c.inline {
		body["templateId"] = c.templateID
	}
	if c.inline {
		c.fromTemplate(body)
	}
	if image := in.text("imageName"); image != "" {
		body["image"] = image
	}
	if disk := in.whole("containerDiskInGb", 0); disk > 0 {
		body["disk"] = translate.Int(disk)
	} else if c.templateID == "" && !c.cpu {
		body["disk"] = translate.Int(defaultDisk)
	}
	if in.has("ports") {
		body["ports"] = translate.List(in.texts("ports"))
	} else if c.templateID == "" {
		body["ports"] = translate.List(defaultPorts)
	}
	if vars := in.env(); len(vars) > 0 {
		merged := maps.Clone(object(body, "env"))
		maps.Copy(merged, translate.EnvObject(vars))
		body["env"] = merged
	}
	c.command(body)
	c.registry(body)
	c.starts(body)
	if in.flag("globalNetworking") {
		body["globalNetworking"] = true
	}
	return body, nil
}

// command sends the container command. An explicit empty array clears the
// template's; without a template it is the same as absent.
func (c *podCreate) command(body map[string]any) {
	in := c.body
	hasEntrypoint, hasCmd := in.has("dockerEntrypoint"), in.has("dockerStartCmd")
	if args := in.text("dockerArgs"); args != "" {
		body["args"] = args
		return
	}
	if !hasEntrypoint && !hasCmd {
		return // the template's own, or none
	}
	command := translate.Command{Entrypoint: in.texts("dockerEntrypoint"), Cmd: in.texts("dockerStartCmd")}
	if c.inline { // the half that is not given is the template's
		inherited := translate.CommandOf(c.template)
		if !hasEntrypoint {
			command.Entrypoint = inherited.Entrypoint
		}
		if !hasCmd {
			command.Cmd = inherited.Cmd
		}
		delete(body, "args")
	}
	clears := c.templateID != "" && !c.inline
	if c.api.cfg.ExecForm == ExecArgs {
		if !command.Empty() || clears {
			body["args"] = command.Args()
		}
		return
	}
	if len(command.Entrypoint) > 0 || clears && hasEntrypoint {
		body["entrypoint"] = translate.List(command.Entrypoint)
	}
	if len(command.Cmd) > 0 || clears && hasCmd {
		body["cmd"] = translate.List(command.Cmd)
	}
}

func (c *podCreate) registry(body map[string]any) {
	switch id := c.body.text("containerRegistryAuthId"); {
	case id != "":
		body["registry"] = id
	case c.inline && c.body.has("containerRegistryAuthId"):
		delete(body, "registry")
	case c.templateID != "" && c.body.has("containerRegistryAuthId"):
		body["registry"] = nil
	}
}

// starts keeps SSH by account keys working: v1 started it where port 22 was
// open, v2 must be asked.
func (c *podCreate) starts(body map[string]any) {
	for _, name := range [...]string{"startSsh", "startJupyter"} {
		if c.body.has(name) {
			body[name] = c.body.flag(name)
		}
	}
	if c.api.cfg.StartSSHDefault && c.templateID == "" && !c.body.has("startSsh") &&
		slices.Contains(translate.Texts(body, "ports"), "22/tcp") {
		body["startSsh"] = true
	}
}

// mounts decides about the volume. It may find that the template cannot be used
// by its id, because v2 has no word for "the template without its volume".
func (c *podCreate) mounts(ctx context.Context, body map[string]any) error {
	in := c.body
	if id := in.text("networkVolumeId"); id != "" {
		return c.networkMount(ctx, body, id)
	}
	size, given := in.whole("volumeInGb", defaultVolume), in.has("volumeInGb")
	if c.cpu {
		if given && size > 0 {
			c.Warn("volumeInGb", "CPU pods have no volume, ignored")
		}
		return nil
	}
	if c.templateID != "" {
		done, err := c.templateMount(ctx, body, size, given)
		if done || err != nil {
			return err
		}
	}
	if size > 0 {
		body["mounts"] = persistent(c.volumeSize(size), in.textOr("volumeMountPath", defaultPath))
	}
	return nil
}

// volumeSize raises a size to the smallest v2 knows.
func (r *request) volumeSize(size int64) int64 {
	if size < minVolume {
		r.Warn("volumeInGb", "raised to 10, the smallest volume")
	}
	return max(size, minVolume)
}

func persistent(size int64, path string) map[string]any {
	return map[string]any{"persistent": map[string]any{"size": translate.Int(size), "path": path}}
}

func network(id, path string) map[string]any {
	return map[string]any{"network": []any{map[string]any{"volumeId": id, "path": path}}}
}

func (c *podCreate) networkMount(ctx context.Context, body map[string]any, id string) error {
	volume, err := c.read(ctx, unknown("network volume", id), "getNetworkVolume", id)
	if err != nil {
		return err
	}
	c.pin = translate.Text(volume, "dataCenter")
	if centres := c.centres(); c.pin != "" && len(centres) > 0 && !slices.Contains(centres, c.pin) {
		return bad("networkVolumeId: the volume is in %s, which is not among dataCenterIds", c.pin)
	}
	body["mounts"] = network(id, c.body.textOr("volumeMountPath", defaultPath))
	return nil
}

// templateMount settles the volume of a pod with a template. done is false when
// the size given applies as without one.
func (c *podCreate) templateMount(ctx context.Context, body map[string]any, size int64, given bool) (done bool, err error) {
	note, _, _ := translate.LoadNote[translate.TemplateNote](ctx, c.Dialogue, c.key(translate.KindTemplate, c.templateID))
	path := c.body.text("volumeMountPath")
	if given && size > 0 || !given && !note.NoVolume && path == "" {
		return !given, nil
	}
	c.template, err = c.read(ctx, unknown("template", c.templateID), "getTemplate", c.templateID)
	if err != nil {
		return true, err
	}
	current := translate.Whole(c.template, "mounts", "persistent", "size")
	switch {
	case current == 0: // nothing to change or to avoid
	case given || note.NoVolume:
		c.inline = true
	default:
		body["mounts"] = persistent(c.volumeSize(current), path)
	}
	return true, nil
}

// fromTemplate puts the template's container settings into the body, as v2 would
// have done by its id.
func (c *podCreate) fromTemplate(body map[string]any) {
	settings(body, c.template)
	for _, name := range [...]string{"startSsh", "startJupyter"} {
		if translate.Flag(c.template, name) {
			body[name] = true
		}
	}
}

// settings copies the container settings that templates, endpoints and pods
// share.
func settings(body map[string]any, from any) {
	for _, name := range [...]string{"image", "args", "registry"} {
		if s := translate.Text(from, name); s != "" {
			body[name] = s
		}
	}
	if disk := translate.Whole(from, "disk"); disk > 0 {
		body["disk"] = translate.Int(disk)
	}
	if ports := translate.Texts(from, "ports"); len(ports) > 0 {
		body["ports"] = translate.List(ports)
	}
	if vars := translate.Members(from, "env"); len(vars) > 0 {
		body["env"] = maps.Clone(vars)
	}
}

// warnSkipped names the candidates the rules of the organisation or the platform
// forbade.
func (c *podCreate) warnSkipped(outcome *translate.Outcome) {
	for _, attempt := range outcome.Attempts {
		if attempt.Status == http.StatusForbidden {
			c.Warn(c.choiceField(), attempt.Label+" skipped: "+forbiddenText(attempt.Detail))
		}
	}
}

func (c *podCreate) choiceField() string {
	if c.cpu {
		return "cpuFlavorIds"
	}
	return "gpuTypeIds"
}

// failed tells why no candidate was placed.
func (c *podCreate) failed(outcome *translate.Outcome) error {
	w := about{verb: "create pod", noun: "pod", given: true}
	switch outcome.Verdict {
	case translate.Unfinished:
		return c.unfinished()
	case translate.Shortage:
		if outcome.Err != nil && outcome.Response == nil && len(outcome.Attempts) == 0 {
			return lost(outcome.Err)
		}
		return &fault{
			status: c.api.cfg.CapacityStatus, text: "create pod: " + textNoCapacity,
			detail: outcome.Response.Detail(),
		}
	case translate.Stopped:
		w.missing = c.missing(outcome.Response.Detail())
	case translate.Placed, translate.Broken, translate.Forbidden, translate.Refused:
		// Nothing to add; a placed pod is no failure and does not get here.
	}
	return c.api.refused(w, outcome.Response, outcome.Err)
}

// missing names the id of the body a 404 is about.
func (c *podCreate) missing(detail string) string {
	words := strings.ToLower(detail)
	registry, volume := c.body.text("containerRegistryAuthId"), c.body.text("networkVolumeId")
	switch {
	case registry != "" && (strings.Contains(words, "registry") || c.templateID == "" && volume == ""):
		return unknown("container registry auth", registry).missing
	case volume != "" && (strings.Contains(words, "volume") || c.templateID == ""):
		return unknown("network volume", volume).missing
	case c.templateID != "":
		return unknown("template", c.templateID).missing
	}
	return detail
}

// origin is the template whose fields are sent instead of its id.
func (c *podCreate) origin() *translate.Origin {
	if !c.inline {
		return nil
	}
	return &translate.Origin{TemplateID: c.templateID}
}

// created finishes a create whose pod exists: nothing after this point may turn
// it into a failure.
func (c *podCreate) created(ctx context.Context, placed translate.Candidate, pod any) (*reply, error) {
	id := translate.Text(pod, "id")
	note := translate.PodNote{
		TemplateID: c.templateID,
		GPUTypeID:  translate.Text(placed.Request.Body, "gpu", "id"),
		GPUCount:   translate.Whole(placed.Request.Body, "gpu", "count"),
	}
	if c.cpu {
		note.GPUTypeID = cpuPods
	}
	note.InjectedEnv = c.injected(ctx, pod)
	if c.body.flag("locked") {
		note.LockedOnCreate = true
		resp, err := c.Send(ctx, with(byID("updatePod", id), map[string]any{"locked": true}), translate.Change)
		if err == nil && resp.OK() && translate.Text(resp.Body, "id") != "" {
			pod = resp.Body
		} else {
			c.Warn("locked", "the pod could not be locked")
		}
	}
	translate.SaveNote(ctx, c.Dialogue, c.key(translate.KindPod, id), note)
	view := podView{note: note, types: c.types}
	if c.types == nil {
		view.types = c.cards(ctx, pod)
	}
	return &reply{status: http.StatusCreated, body: c.pod(pod, view)}, nil
}

// injectable are the variables the platform adds to pods by itself.
var injectable = []string{"JUPYTER_PASSWORD", "PUBLIC_KEY"}

// injected names the variables the platform added by itself: in the pod, and in
// neither the request nor the template.
func (c *podCreate) injected(ctx context.Context, pod any) []string {
	var names []string
	for _, name := range injectable {
		_, asked := c.body.env()[name]
		if translate.At(pod, "env", name) != nil && !asked {
			names = append(names, name)
		}
	}
	if len(names) == 0 || c.templateID == "" {
		return names
	}
	if c.template == nil {
		resp, err := c.Send(ctx, byID("getTemplate", c.templateID), translate.Once)
		if err != nil || !resp.OK() {
			return names
		}
		c.template = resp.Body
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return translate.At(c.template, "env", name) != nil
	})
}

// key names a record of the caller's account.
func (r *request) key(kind, id string) translate.Key {
	return translate.Key{Account: r.Account(), Kind: kind, ID: id}
}
