package graphql

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// endpoint is a serverless endpoint as a value of the schema.
type endpoint struct {
	body   any
	listed bool
}

func (e *endpoint) text(path ...string) string { return translate.Text(e.body, path...) }

func (e *endpoint) id() string { return e.text("id") }

// cpu reports whether it runs on CPU flavours.
func (e *endpoint) cpu() bool {
	return translate.Members(e.body, "gpu") == nil && translate.Items(e.body, "cpu") != nil
}

func (e *endpoint) note(ctx context.Context, x *exchange) translate.EndpointNote {
	if e.listed {
		// Where the store cannot tell, the answer is less exact.
		notes, _ := legacy.Notes[translate.EndpointNote](ctx, x.Session, translate.KindEndpoint)
		return notes[e.id()]
	}
	return x.EndpointNote(ctx, e.id())
}

// templateID is the template it was made from here, or the virtual one that
// stands for its settings.
func (e *endpoint) templateID(ctx context.Context, x *exchange) string {
	return orElse(e.note(ctx, x).TemplateID, legacy.VirtualPrefix+e.id())
}

func wrapEndpoints(list []any) []any {
	out := make([]any, len(list))
	for i, b := range list {
		out[i] = &endpoint{body: b, listed: true}
	}
	return out
}

func (x *exchange) endpointByID(ctx context.Context, id string) (any, error) {
	if id == "" {
		return nil, badInput("id is required")
	}
	e, err := x.Endpoint(ctx, legacy.About{Verb: "get endpoint", Noun: kindEndpoint}, id)
	if err != nil {
		return nil, orMissing(err)
	}
	return &endpoint{body: any(e.Members)}, nil
}

// selection is the GPU pools and excluded types in the legacy notation.
func (e *endpoint) selection() string {
	tokens := translate.Texts(e.body, "gpu", "pools")
	for _, t := range translate.Texts(e.body, "gpu", "excludedTypes") {
		tokens = append(tokens, "-"+t)
	}
	return strings.Join(tokens, ",")
}

// gpuIDs is the text the caller sent when it still means the selection there
// is, so that what was written reads back the same.
func (e *endpoint) gpuIDs(ctx context.Context, x *exchange) string {
	sent := e.note(ctx, x).GPUIDs
	if sent == "" || e.cpu() {
		return e.selection()
	}
	// Where the pools cannot be read, what v2 says is shown.
	s, err := x.parseSelection(ctx, sent)
	if err == nil && sameSet(s.pools, translate.Texts(e.body, "gpu", "pools")) && sameSet(s.excluded, translate.Texts(e.body, "gpu", "excludedTypes")) {
		return sent
	}
	return e.selection()
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// locations is the text the caller sent when there is one, for it cannot be
// made from the centres it became.
func (e *endpoint) locations(ctx context.Context, x *exchange) string {
	centres := translate.Texts(e.body, "dataCenterIds")
	if n := e.note(ctx, x); n.Locations != "" && len(centres) > 0 {
		return n.Locations
	}
	return strings.Join(centres, ",")
}

func (e *endpoint) instances() any {
	if !e.cpu() {
		return nil
	}
	out := []any{}
	for _, c := range translate.Items(e.body, "cpu") {
		out = append(out, translate.Text(c, "id")+"-"+strconv.FormatInt(translate.Whole(c, "vcpuCount"), 10)+
			"-"+strconv.FormatInt(translate.Whole(c, "memory"), 10))
	}
	return out
}

func (e *endpoint) scalerValue() int64 {
	if e.text("scaling", "type") == scaleByCount {
		return translate.Whole(e.body, "scaling", "requestCount")
	}
	return int64(math.Ceil(number(e.body, "scaling", "queueDelay")))
}

// The scalers and endpoint types of v2.
const (
	scaleByDelay = "QUEUE_DELAY"
	scaleByCount = "REQUEST_COUNT"
	queue        = "QUEUE"
	balanced     = "LOAD_BALANCER"
)

func endpointTypes() map[string]objectType {
	return map[string]objectType{
		"Endpoint": endpointFields(),
		"EndpointNetworkVolume": {
			"networkVolumeId": get(func(id volumeID) any { return string(id) }),
			"dataCenterId": field(func(ctx context.Context, x *exchange, id volumeID, _ input) (any, error) {
				v, err := x.volumeByID(ctx, string(id))
				return orNull(translate.Text(v, "dataCenter")), err
			}),
		},
	}
}

// volumeID is a network volume an endpoint uses.
type volumeID string

func endpointFields() objectType {
	whole := func(path ...string) resolver {
		return get(func(e *endpoint) any { return translate.Whole(e.body, path...) })
	}
	noted := func(f func(ctx context.Context, x *exchange, e *endpoint) any) resolver {
		return field(func(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) { return f(ctx, x, e), nil })
	}
	return objectType{
		"id":     get(func(e *endpoint) any { return e.id() }),
		"name":   get(func(e *endpoint) any { return e.text("name") }),
		"userId": noted(func(_ context.Context, x *exchange, _ *endpoint) any { return x.user() }),
		"type": get(func(e *endpoint) any {
			if e.text("type") == balanced {
				return "LB"
			}
			return "QB"
		}),
		"templateId":          noted(func(ctx context.Context, x *exchange, e *endpoint) any { return e.templateID(ctx, x) }),
		"template":            field(endpointTemplate),
		"gpuIds":              noted(func(ctx context.Context, x *exchange, e *endpoint) any { return e.gpuIDs(ctx, x) }),
		"gpuCount":            whole("gpu", "count"),
		"instanceIds":         get(func(e *endpoint) any { return e.instances() }),
		"computeType":         get(func(e *endpoint) any { return e.computeType() }),
		"allowedCudaVersions": get(func(e *endpoint) any { return strings.Join(translate.Texts(e.body, "gpu", "allowedCudaVersions"), ",") }),
		"minCudaVersion":      get(func(e *endpoint) any { return e.text("gpu", "minCudaVersion") }),
		"locations":           noted(func(ctx context.Context, x *exchange, e *endpoint) any { return e.locations(ctx, x) }),
		"compliance":          always(nil),
		"networkVolumeId":     get(func(e *endpoint) any { return orNull(e.firstVolume()) }),
		"networkVolume": field(func(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
			return x.volumeByID(ctx, e.firstVolume())
		}),
		"networkVolumeIds": get(func(e *endpoint) any {
			out := []any{}
			for _, id := range translate.Texts(e.body, "networkVolumes") {
				out = append(out, volumeID(id))
			}
			return out
		}),
		"workersMin":       whole("workers", "min"),
		"workersMax":       whole("workers", "max"),
		"workersStandby":   whole("workers", "max"),
		"workersPFBTarget": always(0),
		"idleTimeout": noted(func(ctx context.Context, x *exchange, e *endpoint) any {
			if n := translate.Whole(e.body, "workers", "idleTimeout"); n > 0 {
				return n
			}
			if n := e.note(ctx, x).IdleTimeout; n > 0 {
				return n
			}
			return 5
		}),
		"scalerType":         get(func(e *endpoint) any { return e.text("scaling", "type") }),
		"scalerValue":        get(func(e *endpoint) any { return e.scalerValue() }),
		"executionTimeoutMs": whole("timeout"),
		"flashBootType":      get(func(e *endpoint) any { return e.text("flashboot") }),
		"env":                get(func(e *endpoint) any { return variables(translate.At(e.body, "env")) }),
		"version":            field(endpointVersion),
		"createdAt":          get(func(e *endpoint) any { return instant(e.text("createdAt")) }),
		"aiKey":              always(nil),
		"activeBuildid":      always(nil),
		"idePodId":           always(nil),
		"flashEnvironmentId": always(nil),
		"hubReleaseId":       noted(func(ctx context.Context, x *exchange, e *endpoint) any { return orNull(e.note(ctx, x).HubReleaseID) }),
		"modelReferences":    always(nil),
		"pods":               field(endpointWorkers),
	}
}

func (e *endpoint) firstVolume() string {
	if ids := translate.Texts(e.body, "networkVolumes"); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

func (e *endpoint) computeType() string {
	if e.cpu() {
		return "CPU"
	}
	return "GPU"
}

// endpointVersion asks for one endpoint only; in a list that would be a call
// for each, for a number nobody depends on.
func endpointVersion(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
	if e.listed {
		return 1, nil
	}
	b, err := x.fetch(ctx, "listEndpointReleases", e.id(), kindEndpoint)
	if n := translate.Whole(b, "endpointVersion"); err == nil && n > 0 {
		return n, nil
	}
	return 1, nil
}

// endpointTemplate shows the real template where it can still be read, else the
// endpoint's own settings under the same id.
func endpointTemplate(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
	id := e.note(ctx, x).TemplateID
	if id == "" {
		return found(legacy.VirtualTemplate(e.body)), nil
	}
	if e.listed {
		list, err := x.OwnTemplates(ctx, "list templates")
		if err != nil {
			return nil, err
		}
		if t := translate.ByID(list, id); t != nil {
			return listedTemplate(t, "own"), nil
		}
	}
	t, err := x.Template(ctx, legacy.About{Verb: "get template", Noun: kindTemplate}, id)
	switch {
	case legacy.IsMissing(err):
		t = legacy.VirtualTemplate(e.body)
		t.KnownAs = id
	case err != nil:
		return nil, err
	}
	return found(t), nil
}

// endpointWorkers lists the active workers as pods.
func endpointWorkers(ctx context.Context, x *exchange, e *endpoint, _ input) (any, error) {
	b, err := x.fetch(ctx, "listEndpointWorkers", e.id(), kindEndpoint)
	if err != nil {
		return nil, err
	}
	out, group := []any{}, &podGroup{}
	for _, w := range translate.Items(b, "workers") {
		m := map[string]any{
			"id": translate.Text(w, "id"), "name": e.text("name"), "status": "RUNNING", "image": translate.Text(w, "image"),
			"dataCenterId": translate.Text(w, "dataCenterId"), "startedAt": translate.Text(w, "startedAt"),
			"createdAt": translate.Text(w, "startedAt"), "cloud": secure,
		}
		if id := translate.Text(w, "gpuTypeId"); id != "" {
			m["gpu"] = map[string]any{"id": id, "count": translate.At(w, "gpuCount")}
		}
		p := &pod{Pod: v2.PodOf(m), endpoint: e.id(), group: group}
		out, group.ids = append(out, p), append(group.ids, p.ID())
	}
	return out, nil
}

func updateEndpointTemplate(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	b, err := required(a, "endpointId", "templateId")
	if err != nil {
		return nil, err
	}
	id := a.text("endpointId")
	delete(b, "endpointId")
	if strings.HasPrefix(a.text("templateId"), legacy.VirtualPrefix) {
		return x.endpointByID(ctx, id)
	}
	after, err := x.change(ctx, "updateEndpoint", id, b, kindEndpoint)
	if err != nil {
		return nil, err
	}
	x.rememberEndpoint(ctx, id, func(n *translate.EndpointNote) { n.TemplateID = a.text("templateId") })
	return &endpoint{body: after}, nil
}

// rememberEndpoint changes what is stored about an endpoint.
func (x *exchange) rememberEndpoint(ctx context.Context, id string, edit func(n *translate.EndpointNote)) {
	n := x.EndpointNote(ctx, id)
	edit(&n)
	translate.SaveNote(ctx, x.Dialogue, x.Key(translate.KindEndpoint, id), n)
}

func deleteEndpoint(ctx context.Context, x *exchange, in input) (any, error) {
	id := in.text("id")
	if id == "" {
		return nil, badInput("id is required")
	}
	return nil, x.DeleteEndpoint(ctx, id)
}
