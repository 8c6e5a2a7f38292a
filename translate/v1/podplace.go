package v1

import (
	"context"
	"iter"
	"maps"
	"regexp"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
)

// maxDefaultTypes is how many GPU types are tried when the caller names none.
const maxDefaultTypes = 10

// choice is one GPU type or CPU flavour and where it may be placed.
type choice struct {
	id string
	// block is the gpu or cpu member of the body.
	block map[string]any
	level int
	// centres are its data centres; anywhere tells that it needs none.
	centres  []string
	anywhere bool
}

// candidates lists the create calls in the order of trial.
func (c *podCreate) candidates(ctx context.Context, base map[string]any) ([]translate.Candidate, error) {
	choose, member, priority := c.gpuChoices, "gpu", "gpuTypePriority"
	if c.cpu {
		choose, member, priority = c.cpuChoices, "cpu", "cpuFlavorPriority"
	}
	choices, err := choose(ctx)
	if err != nil {
		return nil, err
	}
	given := len(c.body.texts(c.choiceField())) > 0
	custom := c.body.text(priority) == "custom"
	if given && !custom {
		slices.SortStableFunc(choices, func(a, b choice) int { return a.level - b.level })
	}
	var list []translate.Candidate
	for ch, centres := range nest(choices, c.places(), c.body.text("dataCenterPriority") == "custom", custom) {
		body := maps.Clone(base)
		body[member] = ch.block
		if len(centres) > 0 {
			body["dataCenterIds"] = translate.List(centres)
		}
		list = append(list, translate.Candidate{
			Label:   ch.id,
			Request: &translate.Request{Operation: "createPod", Body: body, Origin: c.origin()},
		})
		if len(list) == translate.MaxCandidates {
			break // the rest would not be tried
		}
	}
	return list, nil
}

// places are the data centres the caller allows, in order; none means anywhere.
func (c *podCreate) places() []string {
	if c.pin != "" {
		return []string{c.pin}
	}
	return c.centres()
}

// nest combines choices and places, in the order of trial. With placeCustom each
// place is an attempt of its own; places come outside unless the order of the
// choices was given too.
func nest(choices []choice, places []string, placeCustom, choiceCustom bool) iter.Seq2[choice, []string] {
	switch {
	case !placeCustom || len(places) < 2:
		return func(yield func(choice, []string) bool) {
			for _, ch := range choices {
				if !yield(ch, ch.centres) {
					return
				}
			}
		}
	case choiceCustom:
		return func(yield func(choice, []string) bool) {
			for _, ch := range choices {
				for _, place := range places {
					if slices.Contains(ch.centres, place) && !yield(ch, []string{place}) {
						return
					}
				}
			}
		}
	}
	return func(yield func(choice, []string) bool) {
		for _, place := range places {
			for _, ch := range choices {
				if slices.Contains(ch.centres, place) && !yield(ch, []string{place}) {
					return
				}
			}
		}
	}
}

// gpuChoices are the GPU types to try with their gpu blocks.
func (c *podCreate) gpuChoices(ctx context.Context) ([]choice, error) {
	versions, floor, err := c.cuda()
	if err != nil {
		return nil, err
	}
	count := c.body.whole("gpuCount", 1)
	query := translate.GPUQuery{Product: "POD", Count: count, Cloud: c.cloud, CUDAVersions: versions, MinCUDA: floor}
	types, known := c.Deps().Catalog.GPUs(ctx, c.Dialogue, query)
	c.types = types
	given := translate.Unique(c.body.texts("gpuTypeIds"))
	switch {
	case len(given) == 0 && !known:
		return nil, lost(nil)
	case len(given) == 0:
		given = c.cheapest(types, count)
	case known:
		given, err = c.existing(ctx, given, types)
	}
	if err != nil {
		return nil, err
	}
	located, limited, err := c.inCountries(ctx, query)
	if err != nil {
		return nil, err
	}
	block := c.gpuBlock(count, versions, floor)
	places := c.places()
	var choices []choice
	for _, id := range given {
		ch := choice{id: id, centres: places, block: maps.Clone(block)}
		ch.block["id"] = id
		ch.anywhere = len(ch.centres) == 0
		if limited && !c.locate(&ch, translate.ByID(located, id)) {
			continue
		}
		ch.level = translate.LevelIn(translate.ByID(types, id), ch.centres)
		choices = append(choices, ch)
	}
	return choices, nil
}

// gpuBlock is the gpu member without its id. The count is always sent: left out,
// it was seen to fail as a shortage.
func (c *podCreate) gpuBlock(count int64, versions []string, floor string) map[string]any {
	block := map[string]any{"count": translate.Int(count)}
	if len(versions) > 0 || versions != nil && c.templateID != "" && floor == "" {
		block["allowedCudaVersions"] = translate.List(versions)
	}
	if floor != "" {
		block["minCudaVersion"] = floor
	}
	if c.inline && len(versions) == 0 && !c.body.has("allowedCudaVersions") && floor == "" {
		if inherited := translate.Texts(c.template, "allowedCudaVersions"); len(inherited) > 0 {
			block["allowedCudaVersions"] = translate.List(inherited)
		}
	}
	minimums := map[string]struct {
		field  string
		absent int64
	}{"minRamPerGpu": {"minRAMPerGPU", defaultRAM}, "minVcpuCountPerGpu": {"minVCPUPerGPU", defaultVCPU}}
	for name, from := range minimums {
		n := c.body.whole(from.field, from.absent)
		switch {
		case n <= 0:
		case c.api.cfg.GPUMinimums:
			block[name] = translate.Int(n)
		case c.body.has(from.field):
			c.Warn(from.field, "not supported by the platform, ignored")
		}
	}
	return block
}

// cheapest are the types to try when the caller named none: offered in the
// cloud, in that number, with stock.
func (c *podCreate) cheapest(types []any, count int64) []string {
	key := cloudKey(c.cloud)
	fit := slices.DeleteFunc(slices.Clone(types), func(t any) bool {
		return !translate.Flag(t, key) || translate.Whole(t, "maxCount", key) < count || translate.Text(t, "availability") == "NONE"
	})
	fit = byPrice(fit, "price", key)
	return ids(fit[:min(len(fit), maxDefaultTypes)])
}

// existing leaves out the types the catalog does not have. A filtered list may
// lack a type for another reason, so the plain one decides.
func (c *podCreate) existing(ctx context.Context, given []string, types []any) ([]string, error) {
	var kept []string
	for _, id := range given {
		if translate.ByID(types, id) != nil {
			kept = append(kept, id)
			continue
		}
		if all := c.gpuTypes(ctx); all == nil || translate.ByID(all, id) != nil {
			kept = append(kept, id)
			continue
		}
		c.Warn("gpuTypeIds", id+" is not in the catalog, skipped")
	}
	if len(kept) == 0 {
		return nil, bad("gpuTypeIds: none of them is in the catalog")
	}
	return kept, nil
}

var countryPattern = regexp.MustCompile(`^[A-Z]{2}$`)

// inCountries asks the catalog which types are in the countries the caller
// allows; limited is false when it named none. A country may be a rule about
// where data lives, so without an answer nothing is placed.
func (c *podCreate) inCountries(ctx context.Context, query translate.GPUQuery) (types []any, limited bool, err error) {
	codes := translate.Unique(c.body.texts("countryCodes"))
	if len(codes) == 0 {
		return nil, false, nil
	}
	for _, code := range codes {
		if !countryPattern.MatchString(code) {
			return nil, true, bad("countryCodes: %.20q is not a code of two capital letters", code)
		}
	}
	query.CountryCodes = codes
	types, known := c.Deps().Catalog.GPUs(ctx, c.Dialogue, query)
	if !known {
		return nil, true, lost(nil)
	}
	return types, true, nil
}

// locate limits a choice to the data centres of its catalog record and reports
// whether any is left. On the community cloud a type can be available without
// naming a centre; then it is placed without a pin.
func (c *podCreate) locate(ch *choice, record any) bool {
	named := ids(translate.Items(record, "dataCenters"))
	if len(named) == 0 {
		loose := c.cloud == "COMMUNITY" && ch.anywhere && record != nil && translate.Text(record, "availability") != "NONE"
		if loose {
			c.Warn("countryCodes", ch.id+" is placed by the catalog's word that it is there, without a data centre")
		}
		return loose
	}
	if ch.anywhere {
		ch.centres = named
	} else {
		ch.centres = slices.DeleteFunc(slices.Clone(ch.centres), func(id string) bool { return !slices.Contains(named, id) })
	}
	ch.anywhere = false
	return len(ch.centres) > 0
}

// maxDefaultFlavours is how many CPU flavours are tried when none are named.
const maxDefaultFlavours = translate.MaxCandidates

// cpuChoices are the CPU flavours to try with their cpu blocks.
func (c *podCreate) cpuChoices(ctx context.Context) ([]choice, error) {
	vcpus, err := c.vcpus()
	if err != nil {
		return nil, err
	}
	given, records, err := c.flavours(ctx, "POD", "securePerVcpu", vcpus, maxDefaultFlavours)
	if err != nil {
		return nil, err
	}
	// The CPU catalog knows no countries; the GPU one names their centres.
	located, limited, err := c.inCountries(ctx, translate.GPUQuery{Product: "POD", Cloud: "SECURE"})
	if err != nil {
		return nil, err
	}
	var allowed []string
	for _, t := range located {
		allowed = append(allowed, ids(translate.Items(t, "dataCenters"))...)
	}
	allowed = translate.Unique(allowed)
	places := c.places()
	var choices []choice
	for _, id := range given {
		record := translate.ByID(records, id)
		ch := choice{id: id, centres: places}
		ch.block = map[string]any{"id": id, "vcpuCount": translate.Int(vcpus)}
		if limited && !ch.within(allowed) {
			continue
		}
		ch.level = translate.LevelIn(record, ch.centres)
		choices = append(choices, ch)
	}
	return choices, nil
}

// within limits a choice to the allowed data centres and reports whether any is
// left.
func (ch *choice) within(allowed []string) bool {
	if len(ch.centres) == 0 {
		ch.centres = allowed
	} else {
		ch.centres = slices.DeleteFunc(slices.Clone(ch.centres), func(id string) bool { return !slices.Contains(allowed, id) })
	}
	return len(ch.centres) > 0
}
