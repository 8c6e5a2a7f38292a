package v1

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

func createEndpoint(ctx context.Context, r *request) (*reply, error) {
	c := endpointCreate{request: r, templateID: r.body.text("templateId")}
	body, err := c.build(ctx)
	if err != nil {
		return nil, err
	}
	call := &translate.Request{Operation: "createEndpoint", Body: body, Origin: c.origin}
	endpoint, err := r.Create(ctx, legacy.Creation{
		About: legacy.GivenTemplate("create endpoint", c.templateID), Call: call,
		List: "listEndpoints", Member: "endpoints", Claims: "endpoint",
	})
	if err != nil {
		return nil, err
	}
	note := c.note()
	return ok(r.endpointNow(ctx, endpoint, note)), nil
}

// endpointCreate builds the body of one POST /v1/endpoints.
type endpointCreate struct {
	*request
	templateID string
	origin     *translate.Origin
}

func (c *endpointCreate) build(ctx context.Context) (map[string]any, error) {
	in := c.body
	if low := in.whole("workersMin", 0); in.has("workersMax") && low > in.whole("workersMax", 0) {
		return nil, bad("workersMin: must be at most workersMax (%d)", in.whole("workersMax", 0))
	}
	body := map[string]any{
		"type":      "QUEUE", // v1 knew no other
		"scaling":   scaling(in.textOr("scalerType", scalers[0]), in.whole("scalerValue", defaultScaler)),
		"workers":   c.workers(),
		"timeout":   translate.Int(in.whole("executionTimeoutMs", defaultTimeoutMs)),
		"flashboot": "FLASHBOOT",
	}
	if in.has("flashboot") && !in.flag("flashboot") {
		body["flashboot"] = "OFF"
	}
	if err := c.fromTemplate(ctx, body); err != nil {
		return nil, err
	}
	if centres := c.centres(); len(centres) > 0 {
		body["dataCenterIds"] = translate.List(centres)
	}
	if volumes := in.volumes(); len(volumes) > 0 {
		body["networkVolumes"] = translate.List(volumes)
	}
	return body, c.compute(ctx, body)
}

// fromTemplate names the template, or sends the settings of the endpoint whose
// virtual template was named. A missing name is the template's.
func (c *endpointCreate) fromTemplate(ctx context.Context, body map[string]any) error {
	name := c.body.text("name")
	if legacy.IsVirtual(c.templateID) {
		source, err := c.Template(ctx, legacy.GivenTemplate("read template", c.templateID), c.templateID)
		if err != nil {
			return err
		}
		source.CopyInto(v2.ContainerOf(body))
		c.origin = source.Origin()
		body["name"] = c.body.textOr("name", source.Name())
		return nil
	}
	id := c.ResolveTemplate(ctx, c.templateID)
	body["templateId"] = id
	if name == "" {
		template, err := c.read(ctx, unknown("template", c.templateID), "getTemplate", id)
		if err != nil {
			return err
		}
		name = translate.Text(template, "name")
	}
	if name == "" {
		name = c.templateID
	}
	body["name"] = name
	return nil
}

// workers sends both bounds always. v2 refuses the idle timeout of a queue that
// scales by request count; the note keeps it for the answers.
func (c *endpointCreate) workers() map[string]any {
	low := c.body.whole("workersMin", 0)
	high := c.body.whole("workersMax", max(defaultWorkersMax, low))
	workers := map[string]any{"min": translate.Int(low), "max": translate.Int(high)}
	if c.body.textOr("scalerType", scalers[0]) == scalers[0] {
		workers["idleTimeout"] = translate.Int(c.body.whole("idleTimeout", defaultIdle))
	}
	return workers
}

func scaling(kind string, value int64) map[string]any {
	member := "queueDelay"
	if kind == "REQUEST_COUNT" {
		member = "requestCount"
	}
	return map[string]any{"type": kind, member: translate.Int(value)}
}

// volumes is the union of the two ways to name volumes, in order.
func (in input) volumes() []string {
	return translate.Unique(append([]string{in.text("networkVolumeId")}, in.texts("networkVolumeIds")...))
}

func (c *endpointCreate) compute(ctx context.Context, body map[string]any) error {
	in := c.body
	cpu := in.text("computeType") == "CPU" ||
		!in.has("computeType") && len(in.texts("cpuFlavorIds")) > 0 && len(in.texts("gpuTypeIds")) == 0
	if cpu {
		list, err := c.cpuList(ctx)
		body["cpu"] = list
		return err
	}
	gpu := map[string]any{"count": translate.Int(in.whole("gpuCount", 1))}
	if err := c.selectTypes(ctx, gpu); err != nil {
		return err
	}
	versions, floor, err := c.cuda()
	if err != nil {
		return err
	}
	if len(versions) > 0 {
		gpu["allowedCudaVersions"] = translate.List(versions)
	}
	if floor != "" {
		gpu["minCudaVersion"] = floor
	}
	body["gpu"] = gpu
	return nil
}

// maxEndpointFlavours is how many flavours an endpoint gets when none are named.
const maxEndpointFlavours = 3

// cpuList is the cpu member: one entry for each flavour, in order.
func (r *request) cpuList(ctx context.Context) ([]any, error) {
	vcpus, err := r.vcpus()
	if err != nil {
		return nil, err
	}
	chosen, _, err := r.flavours(ctx, "SERVERLESS", "serverlessPerVcpu", vcpus, maxEndpointFlavours)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return nil, bad("cpuFlavorIds: no flavour is available with vcpuCount %d", vcpus)
	}
	var list []any
	for _, id := range chosen {
		list = append(list, map[string]any{"id": id, "vcpuCount": translate.Int(vcpus)})
	}
	return list, nil
}

// note is what v2 will not tell again.
func (c *endpointCreate) note() translate.EndpointNote {
	in := c.body
	return translate.EndpointNote{
		TemplateID: c.templateID, GPUTypeIDs: translate.Unique(in.texts("gpuTypeIds")),
		NetworkVolumeID: in.text("networkVolumeId"), NetworkVolumeIDs: in.texts("networkVolumeIds"),
		IdleTimeout: in.whole("idleTimeout", defaultIdle),
	}
}
