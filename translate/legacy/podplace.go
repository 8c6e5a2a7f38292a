package legacy

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Placement selects the location and the hardware of a pod.
type Placement struct {
	// CPU requests a pod without a GPU. Types then lists CPU flavours.
	CPU bool
	// Types lists GPU types in the caller's order. If it is empty, the cheapest types in stock are selected. TypesField is the caller's name
	// of the field.
	Types      []string
	TypesField string
	// KeepOrder tries the types in the caller's order, not by availability.
	KeepOrder bool
	// SkipCatalogCheck uses the flavours in Types without checking them against the catalog.
	SkipCatalogCheck bool
	// Count is the number of GPUs, or of vCPUs for a CPU pod.
	Count int64
	// MemoryGB is the minimum memory of flavours that are selected automatically.
	MemoryGB int64
	// Clouds lists the allowed clouds. If there are several, each type is tried first in the cloud with the better availability; with equal
	// availability, the cheaper cloud is tried first.
	Clouds []string
	// DataCenters lists the allowed data centres in order. If it is empty, any data centre is allowed. SplitDataCenters makes a separate
	// attempt for each data centre: it tries all types in one data centre before the next, or, with KeepOrder, all data centres for one type
	// before the next.
	DataCenters      []string
	SplitDataCenters bool
	// Countries lists the allowed countries by two-letter codes. If it is empty, any country is allowed.
	Countries []string
	CUDA      CUDA
	// MinMemoryGB and MinVCPUs are minimums per GPU; 0 means no minimum.
	MinMemoryGB, MinVCPUs int64
	// MaxPrice is the maximum price of the pod per hour; 0 means no limit.
	MaxPrice float64
}

const (
	// maxDefaultTypes is the number of GPU types to try if the caller names none.
	maxDefaultTypes = 10
	// maxUnknownTypes is the maximum number of unknown GPU types that a refusal names.
	maxUnknownTypes = 10
	// priceTolerance is the amount by which a price may exceed MaxPrice. Clients compute MaxPrice with fewer digits than the catalog has.
	priceTolerance = 0.005
)

// choice is one GPU type or CPU flavour in one cloud, with the data centres that it may use.
type choice struct {
	id, cloud string
	// record is the catalog record, or nil if the catalog lacks it or cannot be read.
	record  any
	level   int
	centres []string // empty if the choice is not limited to any data centre
}

// price returns the price of one GPU or vCPU.
func (ch choice) price() float64 {
	if p, ok := translate.Number(translate.At(ch.record, "price", "securePerVcpu")); ok {
		return p
	}
	return number(ch.record, "price", strings.ToLower(ch.cloud))
}

// candidates returns the create calls in order of attempts.
func (c *podCreate) candidates(ctx context.Context, base v2.Pod) ([]translate.Candidate, error) {
	choose := c.gpuChoices
	if c.want.CPU {
		choose = c.cpuChoices
	}
	if err := c.checkCountries(); err != nil {
		return nil, err
	}
	choices, err := choose(ctx)
	if err != nil {
		return nil, err
	}
	if len(c.want.Types) > 0 && !c.want.KeepOrder {
		slices.SortStableFunc(choices, func(a, b choice) int { return a.level - b.level })
	}
	var list []translate.Candidate
	for _, ch := range c.split(choices) {
		b := v2.PodOf(maps.Clone(base.Members))
		b.SetCloud(ch.cloud)
		if c.want.CPU {
			b.SetCPU(ch.id, c.want.Count)
		} else {
			c.setGPU(b, ch.id)
		}
		if len(ch.centres) > 0 {
			b.SetDataCenters(ch.centres)
		}
		label := ch.id
		if len(c.want.Clouds) > 1 {
			label += " " + ch.cloud
		}
		list = append(list, translate.Candidate{
			Label: label, Request: &translate.Request{Operation: "createPod", Body: b.Members, Origin: c.origin()},
		})
	}
	return list, nil
}

// split returns the choices in order of attempts, each in one data centre if the caller asked for separate attempts. It returns no more
// than are tried.
func (c *podCreate) split(choices []choice) []choice {
	centres := c.want.DataCenters
	if !c.want.SplitDataCenters || len(centres) < 2 {
		return choices[:min(len(choices), translate.MaxCandidates)]
	}
	var attempts []choice
	add := func(ch choice, centre string) {
		if slices.Contains(ch.centres, centre) && len(attempts) < translate.MaxCandidates {
			ch.centres = []string{centre}
			attempts = append(attempts, ch)
		}
	}
	if c.want.KeepOrder {
		for _, ch := range choices {
			for _, centre := range centres {
				add(ch, centre)
			}
		}
		return attempts
	}
	for _, centre := range centres {
		for _, ch := range choices {
			add(ch, centre)
		}
	}
	return attempts
}

// setGPU writes the gpu member. It always sends the count, because v2 has reported a shortage when it was missing.
func (c *podCreate) setGPU(b v2.Pod, id string) {
	b.SetGPU(id, c.want.Count)
	versions := c.want.CUDA.Versions
	if c.inline && versions == nil {
		versions = c.template.CUDAVersions()
	}
	switch {
	case c.want.CUDA.Floor != "":
		b.SetMinCUDA(c.want.CUDA.Floor)
	case len(versions) > 0 || c.want.CUDA.Versions != nil && c.want.Template != "":
		b.SetCUDAVersions(versions)
	}
	b.SetMinimums(c.want.MinMemoryGB, c.want.MinVCPUs)
}

// gpuChoices returns the GPU types to try, with their clouds.
func (c *podCreate) gpuChoices(ctx context.Context) ([]choice, error) {
	offered, there := map[string][]any{}, map[string][]any{}
	for _, cloud := range c.want.Clouds {
		var err error
		offered[cloud], there[cloud], err = c.offers(ctx, cloud)
		if err != nil && (len(c.want.Types) == 0 || len(c.want.Countries) > 0 || c.want.MaxPrice > 0) {
			return nil, err // without the catalog, country and price cannot be checked
		}
		if err != nil {
			offered = nil
			break
		}
	}
	if c.types = offered[c.want.Clouds[0]]; len(c.want.Types) == 0 {
		c.want.Types, c.want.KeepOrder = c.cheapest(c.types), true
	} else if err := c.dropUnknown(ctx, offered); err != nil {
		return nil, err
	}
	var choices []choice
	for _, id := range c.want.Types {
		var clouds []choice
		for _, cloud := range c.want.Clouds {
			ch := choice{
				id: id, cloud: cloud, record: translate.ByID(offered[cloud], id),
				centres: c.want.DataCenters,
			}
			elsewhere := len(c.want.Clouds) > 1 && ch.record != nil && !translate.Flag(ch.record, strings.ToLower(cloud))
			if elsewhere || !c.affords(ch) || len(c.want.Countries) > 0 && !c.locate(&ch, translate.ByID(there[cloud], id)) {
				continue
			}
			ch.level = translate.LevelIn(ch.record, ch.centres)
			clouds = append(clouds, ch)
		}
		slices.SortStableFunc(clouds, func(a, b choice) int {
			if a.level != b.level || a.record == nil || b.record == nil {
				return a.level - b.level
			}
			return cmp.Compare(a.price(), b.price())
		})
		choices = append(choices, clouds...)
	}
	return choices, nil
}

// affords reports whether the price of a choice is known and does not exceed the caller's maximum.
func (c *podCreate) affords(ch choice) bool {
	return c.want.MaxPrice <= 0 || ch.record != nil && ch.price()*float64(c.want.Count) <= c.want.MaxPrice+priceTolerance
}

// offers returns the GPU types of a cloud, and the GPU types that are available in the allowed countries.
func (c *podCreate) offers(ctx context.Context, cloud string) (all, there []any, err error) {
	q := translate.GPUQuery{Product: "POD", Count: c.want.Count, Cloud: cloud, CUDAVersions: c.want.CUDA.Versions, MinCUDA: c.want.CUDA.Floor}
	if len(c.want.Countries) == 0 || c.Quirks.QueryCountriesSeparately {
		if all, err = c.GPUs(ctx, q); err != nil || len(c.want.Countries) == 0 {
			return all, all, err
		}
	}
	q.CountryCodes = c.want.Countries
	there, err = c.GPUs(ctx, q)
	if !c.Quirks.QueryCountriesSeparately {
		all = there
	}
	return all, there, err
}

// cheapest returns the types to try if the caller named none: those in stock that the cloud offers in the requested
// number.
func (c *podCreate) cheapest(types []any) []string {
	cloud := strings.ToLower(c.want.Clouds[0])
	fit := slices.DeleteFunc(slices.Clone(types), func(t any) bool {
		return !translate.Flag(t, cloud) || translate.Whole(t, "maxCount", cloud) < c.want.Count || translate.Text(t, "availability") == "NONE"
	})
	fit = byPrice(fit, "price", cloud)
	return IDs(fit[:min(len(fit), maxDefaultTypes)])
}

// dropUnknown removes types that are not in the catalog. It checks the unfiltered list, because a filtered one may omit a
// type for another reason.
func (c *podCreate) dropUnknown(ctx context.Context, offered map[string][]any) error {
	known := func(id string) bool {
		for _, list := range offered {
			if translate.ByID(list, id) != nil {
				return true
			}
		}
		all, err := c.GPUs(ctx, translate.GPUQuery{})
		return err != nil || translate.ByID(all, id) != nil
	}
	given := translate.Unique(c.want.Types)
	if c.want.Types = given; offered == nil {
		return nil
	}
	c.want.Types = nil
	var lacking []string
	for _, id := range given {
		if known(id) {
			c.want.Types = append(c.want.Types, id)
			continue
		}
		all, _ := c.GPUs(ctx, translate.GPUQuery{})
		meant := " is not in the catalog" + didYouMean(id, all)
		c.Warn(c.want.TypesField, "ignored "+id+", which"+meant)
		if len(lacking) < maxUnknownTypes {
			lacking = append(lacking, translate.Clip(id, 64)+meant)
		}
	}
	if len(c.want.Types) == 0 {
		return invalid("", "%s: %s", c.Quirks.UnknownTypes, strings.Join(lacking, ", "))
	}
	return nil
}

// didYouMean returns the end of a sentence that suggests the GPU types that name abbreviates, or "".
func didYouMean(name string, types []any) string {
	if translate.ByID(types, name) != nil {
		return "" // the type exists but is not offered here
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = translate.Text(t, "id") + " " + translate.Text(t, "name")
	}
	var meant []string
	for _, i := range fault.Abbreviates(name, names) {
		meant = append(meant, translate.Text(types[i], "id"))
	}
	if len(meant) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(meant, " or ") + "?"
}

var countryPattern = regexp.MustCompile(`^[A-Z]{2}$`)

// IsCountry reports whether code consists of two capital letters, like a country code.
func IsCountry(code string) bool { return countryPattern.MatchString(code) }

func (c *podCreate) checkCountries() error {
	for _, code := range c.want.Countries {
		if !IsCountry(code) {
			return invalid(c.Quirks.CountriesField, "%.20q is not a country code of two capital letters", code)
		}
	}
	return nil
}

// locate limits a choice to the data centres of its catalog record and reports whether any remain. On the community
// cloud, a type can be available without a named data centre; it is then placed without one.
func (c *podCreate) locate(ch *choice, record any) bool {
	named := IDs(translate.Items(record, "dataCenters"))
	if len(named) == 0 {
		loose := ch.cloud == v2.Community && len(ch.centres) == 0 && record != nil && translate.Text(record, "availability") != "NONE"
		if loose {
			c.Warn(c.Quirks.CountriesField, ch.id+" is placed without a data centre because the catalog does not name one")
		}
		return loose
	}
	return ch.within(named)
}

// within limits a choice to the given data centres and reports whether any remain.
func (ch *choice) within(allowed []string) bool {
	if len(ch.centres) == 0 {
		ch.centres = allowed
	} else {
		ch.centres = slices.DeleteFunc(slices.Clone(ch.centres), func(id string) bool { return !slices.Contains(allowed, id) })
	}
	return len(ch.centres) > 0
}

// cpuChoices returns the CPU flavours to try.
func (c *podCreate) cpuChoices(ctx context.Context) ([]choice, error) {
	flavours, records := c.want.Types, []any(nil)
	if !c.want.SkipCatalogCheck || c.want.MaxPrice > 0 {
		var err error
		w := &FlavourInput{
			IDs: c.want.Types, Field: c.want.TypesField, VCPUs: c.want.Count,
			VCPUsField: c.Quirks.VCPUsField, MemoryGB: c.want.MemoryGB,
		}
		if flavours, records, err = c.Flavours(ctx, w, "POD", "securePerVcpu", translate.MaxCandidates); err != nil {
			return nil, err
		}
	}
	var allowed []string
	if len(c.want.Countries) > 0 { // the CPU catalog has no countries; the GPU catalog lists their data centres
		there, err := c.GPUs(ctx, translate.GPUQuery{Product: "POD", Cloud: v2.Secure, CountryCodes: c.want.Countries})
		if err != nil {
			return nil, err
		}
		for _, t := range there {
			allowed = append(allowed, IDs(translate.Items(t, "dataCenters"))...)
		}
		allowed = translate.Unique(allowed)
	}
	var choices []choice
	for _, id := range flavours {
		ch := choice{id: id, cloud: v2.Secure, record: translate.ByID(records, id), centres: c.want.DataCenters}
		if !c.affords(ch) || len(c.want.Countries) > 0 && !ch.within(allowed) {
			continue
		}
		ch.level = translate.LevelIn(ch.record, ch.centres)
		choices = append(choices, ch)
	}
	return choices, nil
}
