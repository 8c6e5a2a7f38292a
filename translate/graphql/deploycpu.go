package graphql

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// deployCPUPod rents a pod without GPU: the instance named, or the cheapest
// flavour that has what was asked for.
func deployCPUPod(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if err := undeployable(a); err != nil {
		return nil, err
	}
	d := &deployment{x: x, a: a}
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	if a.text("cloudType") == community {
		x.Warn("cloudType", "CPU pods are placed in SECURE only")
	}
	if size, _ := a.int("volumeInGb"); size > 0 && a.text("networkVolumeId") == "" {
		x.Warn("volumeInGb", "CPU pods have no persistent volume")
	}
	if a.text("networkVolumeId") != "" {
		mounts, err := d.mounts(ctx)
		if err != nil {
			return nil, err
		}
		d.body["mounts"] = mounts
	}
	if err := d.pinCountry(ctx); err != nil {
		return nil, err
	}
	candidates, err := d.cpuCandidates(ctx)
	if err != nil {
		return nil, err
	}
	p, err := d.run(ctx, candidates)
	if isStatus(err, 404) && a.text("templateId") != "" && a.text("imageName") != "" {
		// The official SDK sends the name of a default template with every CPU
		// pod, which need not exist.
		x.Warn("templateId", "unknown template was left out")
		d.a = maps.Clone(d.a)
		delete(d.a, "templateId")
		for i := range candidates {
			body := maps.Clone(translate.Members(candidates[i].Request.Body))
			delete(body, "templateId")
			if body["ports"] == nil {
				body["ports"] = []any{}
			}
			candidates[i].Request = &translate.Request{Operation: "createPod", Body: body}
		}
		return d.run(ctx, candidates)
	}
	return p, err
}

// pinCountry turns a country into centres. The CPU catalog knows no countries,
// so the GPU catalog says which centres are there.
func (d *deployment) pinCountry(ctx context.Context) error {
	if d.place.country == "" {
		return nil
	}
	list, err := d.x.gpus(ctx, translate.GPUQuery{Product: "POD", Cloud: secure, CountryCodes: []string{d.place.country}})
	if err != nil {
		return err
	}
	var ids []string
	for _, entry := range list {
		ids = append(ids, centreIDs(entry)...)
	}
	d.place.intersect(translate.Unique(ids))
	if d.place.impossible() {
		return noCapacity(0)
	}
	return nil
}

// flavour is a CPU flavour with a vCPU count.
type flavour struct {
	id    string
	vcpus int64
	entry any
	level int
}

func (f flavour) price() float64 {
	return number(f.entry, "price", "securePerVcpu") * float64(f.vcpus)
}

// cpuCandidates lists create calls for the flavours that will do.
func (d *deployment) cpuCandidates(ctx context.Context) ([]translate.Candidate, error) {
	flavours, err := d.flavours(ctx)
	if err != nil {
		return nil, err
	}
	var candidates []translate.Candidate
	for _, f := range flavours {
		if most := d.ceiling(); most > 0 && (f.entry == nil || f.price() > most+costTolerance) {
			continue
		}
		body := maps.Clone(d.body)
		body["cpu"] = map[string]any{"id": f.id, "vcpuCount": translate.Int(f.vcpus)}
		body["cloud"] = secure
		if len(d.place.centres) > 0 {
			body["dataCenterIds"] = translate.List(d.place.centres)
		}
		candidates = append(candidates, translate.Candidate{
			Label: f.id, Request: &translate.Request{Operation: "createPod", Body: body, Origin: d.origin},
		})
	}
	return candidates, nil
}

func (d *deployment) flavours(ctx context.Context) ([]flavour, error) {
	if id := d.a.text("instanceId"); id != "" {
		name, vcpus, ok := splitInstance(id)
		if !ok {
			return nil, badInput("instanceId must be <flavour>-<vcpu>-<memory>")
		}
		f := flavour{id: name, vcpus: vcpus}
		if d.ceiling() > 0 {
			list, err := d.x.cpus(ctx, vcpus)
			if err != nil {
				return nil, err
			}
			f.entry = translate.ByID(list, name)
		}
		return []flavour{f}, nil
	}
	return d.cheapestFlavours(ctx)
}

// cheapestFlavours lists the flavours with enough vCPUs and memory that are in
// stock, cheapest first.
func (d *deployment) cheapestFlavours(ctx context.Context) ([]flavour, error) {
	least, _ := d.a.int("minVcpuCount")
	vcpus := translate.PowerOfTwo(least)
	if vcpus == 0 {
		return nil, noCapacity(0)
	}
	list, err := d.x.cpus(ctx, vcpus)
	if err != nil {
		return nil, err
	}
	memory, _ := d.a.int("minMemoryInGb")
	var out []flavour
	for _, entry := range list {
		f := flavour{id: translate.Text(entry, "id"), vcpus: vcpus, entry: entry, level: translate.LevelIn(entry, d.place.centres)}
		fits := vcpus >= translate.Whole(entry, "vcpu", "min") && vcpus <= translate.Whole(entry, "vcpu", "max")
		if !fits || f.level >= translate.Level("NONE") || number(entry, "ramGbPerVcpu")*float64(vcpus) < float64(memory) {
			continue
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b flavour) int {
		switch {
		case a.price() < b.price():
			return -1
		case a.price() > b.price():
			return 1
		}
		return 0
	})
	return out, nil
}

// splitInstance reads "<flavour>-<vcpu>-<memory>" from the right. v2 derives
// the memory itself.
func splitInstance(id string) (name string, vcpus int64, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) < 3 {
		return "", 0, false
	}
	n := len(parts)
	vcpus, err := strconv.ParseInt(parts[n-2], 10, 32)
	_, memErr := strconv.ParseFloat(parts[n-1], 64)
	name = strings.Join(parts[:n-2], "-")
	return name, vcpus, err == nil && memErr == nil && vcpus > 0 && name != ""
}
