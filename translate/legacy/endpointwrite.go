package legacy

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// EndpointInput holds a caller's settings of a serverless endpoint.
type EndpointInput struct {
	// Container holds the caller's own settings, which override the template's.
	Container
	Name, TemplateID, Type Optional[string]
	// GPUs lists GPU types and pools. A minus sign in front of a GPU type excludes the type.
	GPUs, CUDAVersions Optional[[]string]
	MinCUDA            Optional[string]
	GPUCount           Optional[int64]
	// CPU requests CPU instances, which Hooks selects.
	CPU     bool
	Volumes Optional[[]string]

	WorkersMin, WorkersMax, IdleTimeout, ScalerValue, TimeoutMS Optional[int64]
	Scaler, Flashboot                                           Optional[string]
	// FlashbootOn is used in place of Flashboot by dialects that only have on and off.
	FlashbootOn Optional[bool]
	Hooks       EndpointHooks
}

// EndpointHooks handles the parts of the input that are specific to a dialect.
type EndpointHooks interface {
	// CPUs selects the CPU instances of an endpoint. current is the endpoint before the update.
	CPUs(ctx context.Context, current v2.Endpoint) ([]v2.CPU, error)
	// Places selects data centres. An empty list allows any data centre.
	Places(ctx context.Context) (Optional[[]string], error)
	// Remember sets the dialect's members of the stored EndpointNote after a request with the given body.
	Remember(note *translate.EndpointNote, body v2.Endpoint)
}

// Defaults of the legacy APIs.
const (
	defaultWorkersMax  = 3
	defaultScalerValue = 4
	defaultTimeoutMS   = 600_000
)

// endpointWrite is the state of one CreateEndpoint or UpdateEndpoint call.
type endpointWrite struct {
	*Session
	w *EndpointInput
	// now is the current endpoint, without members on create.
	now, body v2.Endpoint
	note      translate.EndpointNote
	origin    *translate.Origin
}

// CreateEndpoint creates an endpoint.
func (s *Session) CreateEndpoint(ctx context.Context, w *EndpointInput) (v2.Endpoint, translate.EndpointNote, error) {
	e := &endpointWrite{Session: s, w: w, body: v2.NewEndpoint()}
	made, err := e.create(ctx)
	if err != nil {
		return v2.Endpoint{}, e.note, err
	}
	w.Hooks.Remember(&e.note, e.body)
	e.remember(ctx, made.ID(), made, translate.EndpointNote{})
	return made, e.note, nil
}

func (e *endpointWrite) create(ctx context.Context) (v2.Endpoint, error) {
	b, kind := e.body, e.w.Type.Or(v2.Queue)
	least := e.w.WorkersMin.Or(0)
	most := e.w.WorkersMax.Or(max(defaultWorkersMax, least))
	if err := inOrder(least, most); err != nil {
		return b, err
	}
	b.SetType(kind)
	b.SetTimeout(e.w.TimeoutMS.Or(defaultTimeoutMS))
	b.SetFlashboot(v2.FlashbootOff)
	e.flashboot()
	if err := e.fromTemplate(ctx); err != nil {
		return b, err
	}
	e.w.Container.WriteCreate(b.Container)
	if err := e.compute(ctx); err != nil {
		return b, err
	}
	if err := e.places(ctx); err != nil {
		return b, err
	}
	if volumes := e.w.Volumes.Value(); len(volumes) > 0 {
		b.SetVolumes(volumes)
	}
	b.SetScaling(e.scaler(), e.w.ScalerValue.Or(defaultScalerValue))
	b.SetWorkersMin(least)
	b.SetWorkersMax(most)
	e.note.IdleTimeout = e.w.IdleTimeout.Value()
	if !e.byCount() {
		b.SetIdleTimeout(e.w.IdleTimeout.Or(e.Quirks.DefaultIdle))
	}
	purpose := NounEndpoint.Purpose("create")
	if id := e.w.TemplateID.Value(); id != "" {
		purpose.Noun, purpose.BodyID = NounTemplate, id
	}
	call := Call("createEndpoint", "", b.Members)
	call.Origin = e.origin
	made, err := e.Create(ctx, purpose, call)
	return v2.EndpointOf(made), e.misplaced(ctx, purpose.Verb, err, b.DataCenters()...)
}

// UpdateEndpoint updates an endpoint. Settings that the input omits stay unchanged. v2 accepts some objects only as a whole; UpdateEndpoint
// completes these objects from the current endpoint.
func (s *Session) UpdateEndpoint(ctx context.Context, id string, w *EndpointInput) (v2.Endpoint, translate.EndpointNote, error) {
	e := &endpointWrite{Session: s, w: w, body: v2.NewEndpoint(), note: s.EndpointNote(ctx, id)}
	var err error
	if e.now, err = s.Endpoint(ctx, NounEndpoint.Purpose("update"), id); err != nil {
		return e.now, e.note, err
	}
	before := e.note
	e.note.IdleTimeout = cmp.Or(e.now.IdleTimeout(), e.note.IdleTimeout) // v2 drops it while the scaler counts requests
	current := e.note
	if err := e.change(ctx, id); err != nil {
		return e.now, e.note, err
	}
	w.Hooks.Remember(&e.note, e.body)
	p := patch{
		purpose: NounEndpoint.Purpose("update"), update: "updateEndpoint", id: id, origin: e.origin, noted: !reflect.DeepEqual(current, e.note),
	}
	if e.body.Has("templateId") {
		p.purpose.Noun, p.purpose.BodyID = NounTemplate, w.TemplateID.Value()
	}
	after, err := s.apply(ctx, &p, e.body.Members, e.now.Members)
	if err != nil {
		return e.now, e.note, s.misplaced(ctx, p.purpose.Verb, err, e.body.DataCenters()...)
	}
	now := v2.EndpointOf(after)
	e.remember(ctx, id, now, before)
	return now, e.note, nil
}

// followsAnother reports whether the input names a template other than the virtual template of the endpoint itself, which
// clients send because they write back what they read.
func (e *endpointWrite) followsAnother(id string) bool {
	template := e.w.TemplateID.Value()
	return template != "" && template != virtualPrefix+id
}

func (e *endpointWrite) change(ctx context.Context, id string) error {
	if kind, ok := e.w.Type.Get(); ok && kind != e.kind() {
		return invalid("", "type of an endpoint cannot be changed")
	}
	gpu := len(translate.Unique(e.w.GPUs.Value())) > 0 || e.Quirks.StrictComputeType &&
		(e.w.GPUCount.IsSet() || e.w.CUDAVersions.IsSet() || e.w.MinCUDA.Value() != "")
	if e.now.IsCPU() && gpu || !e.now.IsCPU() && e.w.CPU {
		return invalid("", "compute type of an endpoint cannot be changed")
	}
	b := e.body
	if name := e.w.Name.Value(); name != "" {
		b.SetName(name)
	}
	e.w.TimeoutMS.Apply(b.SetTimeout)
	e.flashboot()
	if e.followsAnother(id) {
		if err := e.fromTemplate(ctx); err != nil {
			return err
		}
	}
	e.w.Container.WriteUpdate(b.Container, e.now.Container)
	if err := e.workers(); err != nil {
		return err
	}
	e.scaling()
	if err := e.computeChange(ctx); err != nil {
		return err
	}
	e.w.Volumes.Apply(b.SetVolumes)
	return e.places(ctx)
}

// fromTemplate sets the id of the template in the body. For a virtual template, which v2 does not know, it copies the
// settings of the corresponding endpoint. A new endpoint without a name gets the template's name.
func (e *endpointWrite) fromTemplate(ctx context.Context) error {
	id, name := e.w.TemplateID.Value(), e.w.Name.Value()
	creating := e.now.Empty()
	e.note.TemplateID = id
	switch {
	case IsVirtual(id):
		t, err := e.Template(ctx, referencedTemplate(id), id)
		if err != nil {
			return err
		}
		t.CopyInto(e.body.Container)
		e.origin = t.Origin()
		name = cmp.Or(name, t.Name())
	case id != "" && creating && name == "":
		t, err := e.Template(ctx, referencedTemplate(id), id)
		if err != nil {
			return err
		}
		name = cmp.Or(t.Name(), id)
		e.body.SetTemplateID(t.realID())
	case id != "":
		e.body.SetTemplateID(e.ResolveTemplate(ctx, id))
	}
	if !creating {
		return nil
	}
	if name == "" {
		return invalid("", "name is required")
	}
	e.body.SetName(name)
	return nil
}

func (e *endpointWrite) places(ctx context.Context) error {
	setting, err := e.w.Hooks.Places(ctx)
	if ids, ok := setting.Get(); ok && (len(ids) > 0 || !e.now.Empty()) {
		e.body.SetDataCenters(ids)
	}
	return err
}

// compute sets the CPU instances or GPU pools of a new endpoint.
func (e *endpointWrite) compute(ctx context.Context) error {
	if e.w.CPU {
		list, err := e.w.Hooks.CPUs(ctx, e.now)
		e.body.SetCPUs(list)
		return err
	}
	chosen, err := e.choosePools(ctx, translate.Unique(e.w.GPUs.Value()))
	if err != nil {
		return err
	}
	e.body.SetPools(chosen.ids)
	if len(chosen.excluded) > 0 {
		e.body.SetExcluded(chosen.excluded)
	}
	e.body.SetGPUCount(max(e.w.GPUCount.Value(), 1))
	c, err := CUDAOf(e.w.CUDAVersions.Value(), e.w.MinCUDA.Value())
	if len(c.Versions) > 0 {
		e.body.SetCUDAVersions(c.Versions)
	} else if c.Floor != "" {
		e.body.SetMinCUDA(c.Floor)
	}
	return err
}

// computeChange updates the GPU or CPU settings. It sends pools and exclusions together, because v2 would combine a new value of one with
// the old value of the other.
func (e *endpointWrite) computeChange(ctx context.Context) error {
	if e.w.CPU {
		list, err := e.w.Hooks.CPUs(ctx, e.now)
		if !slices.EqualFunc(list, e.now.CPUs(), func(a, b v2.CPU) bool { return a.ID == b.ID && a.VCPUs == b.VCPUs }) {
			e.body.SetCPUs(list)
		}
		return err
	}
	if e.now.IsCPU() {
		return nil
	}
	if tokens := translate.Unique(e.w.GPUs.Value()); len(tokens) > 0 {
		chosen, err := e.choosePools(ctx, tokens)
		if err != nil {
			return err
		}
		e.body.SetPools(chosen.ids)
		e.body.SetExcluded(chosen.excluded)
	}
	if n := e.w.GPUCount.Value(); n > 0 {
		e.body.SetGPUCount(n)
	}
	return e.cudaChange()
}

// cudaChange sets one CUDA constraint and clears the other, because v2 rejects both together.
func (e *endpointWrite) cudaChange() error {
	c, err := CUDAOf(e.w.CUDAVersions.Value(), e.w.MinCUDA.Value())
	listed, floored := len(e.now.CUDAVersions()) > 0, e.now.MinCUDA() != ""
	switch {
	case len(c.Versions) > 0:
		e.body.SetCUDAVersions(c.Versions)
		if floored {
			e.body.SetMinCUDA("")
		}
	case c.Floor != "":
		e.body.SetMinCUDA(c.Floor)
		if listed {
			e.body.SetCUDAVersions(nil)
		}
	default:
		if listed && e.w.CUDAVersions.IsSet() {
			e.body.SetCUDAVersions(nil)
		}
		if floored && e.w.MinCUDA.IsSet() {
			e.body.SetMinCUDA("")
		}
	}
	return err
}

// kind returns the endpoint's type.
func (e *endpointWrite) kind() string {
	return cmp.Or(e.body.Type(), e.now.Type(), v2.Queue)
}

// scaler returns the scaler that the endpoint will have. Load balancers support only one.
func (e *endpointWrite) scaler() string {
	if e.kind() == v2.LoadBalancer {
		return v2.ByCount
	}
	return cmp.Or(e.w.Scaler.Value(), e.now.Scaler(), v2.ByDelay)
}

// byCount reports whether the endpoint will be a queue scaled by request count. v2 rejects an idle timeout for such a
// queue.
func (e *endpointWrite) byCount() bool { return e.kind() == v2.Queue && e.scaler() == v2.ByCount }

// scaling sends the whole scaler. The part that is not given keeps its current value.
func (e *endpointWrite) scaling() {
	value, given := e.w.ScalerValue.Get()
	switch {
	case given:
	case e.w.Scaler.Value() == "" || e.scaler() == e.now.Scaler():
		return // nothing changes
	default:
		value = defaultScalerValue
	}
	e.body.SetScaling(e.scaler(), value)
}

// inOrder checks that the minimum number of workers does not exceed the maximum.
func inOrder(least, most int64) error {
	if least > most {
		return invalid("workersMin", "must be at most workersMax (%d)", most)
	}
	return nil
}

// workers sends the changed bounds. A new maximum below the current minimum also lowers the minimum.
func (e *endpointWrite) workers() error {
	least, most := e.w.WorkersMin, e.w.WorkersMax
	if n, ok := most.Get(); ok && !least.IsSet() && n < e.now.WorkersMin() {
		least = Given(n)
	}
	if least.IsSet() {
		if err := inOrder(least.Value(), most.Or(e.now.WorkersMax())); err != nil {
			return err
		}
	}
	least.Apply(e.body.SetWorkersMin)
	most.Apply(e.body.SetWorkersMax)
	e.note.IdleTimeout = e.w.IdleTimeout.Or(e.note.IdleTimeout)
	resumed := e.now.IdleTimeout() == 0 && e.w.Scaler.Value() != ""
	if e.note.IdleTimeout > 0 && !e.byCount() && (e.w.IdleTimeout.IsSet() || resumed) {
		e.body.SetIdleTimeout(e.note.IdleTimeout)
	}
	return nil
}

// flashboot sets the mode. In dialects that only have on and off, "on" keeps the priority mode.
func (e *endpointWrite) flashboot() {
	if mode := e.w.Flashboot.Value(); mode != "" {
		e.body.SetFlashboot(mode)
	}
	switch on, given := e.w.FlashbootOn.Get(); {
	case given && !on:
		e.body.SetFlashboot(v2.FlashbootOff)
	case given && e.now.Flashboot() != v2.FlashbootPrio:
		e.body.SetFlashboot(v2.FlashbootOn)
	}
}

// remember stores the values that v2 does not return, if they have changed.
func (e *endpointWrite) remember(ctx context.Context, id string, after v2.Endpoint, before translate.EndpointNote) {
	if e.body.Has("gpu") || e.body.Has("cpu") {
		e.note.BilledType = e.billedType(ctx, after)
	}
	if !reflect.DeepEqual(before, e.note) {
		translate.SaveNote(ctx, e.Client, e.Key(translate.KindEndpoint, id), e.note)
	}
}
