package legacy

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Placement names the places and the hardware of a pod.
type Placement struct {
	// CPU asks for a pod without GPU; Types are flavours then.
	CPU bool
	// Types are GPU types in the caller's order, none for the cheapest in stock;
	// TypesField is the caller's name of them.
	Types      []string
	TypesField string
	// KeepOrder tries the types in the caller's order, not by availability.
	KeepOrder bool
	// SkipCatalogCheck takes flavours as they are given, without a look at the catalog.
	SkipCatalogCheck bool
	// Count is the number of GPUs, or of vCPUs.
	Count int64
	// MemoryGB is the least memory of flavours that are chosen for the caller.
	MemoryGB int64
	// Clouds are those that may do. Of several, the one with the better
	// availability comes first for each type, then the cheaper one.
	Clouds []string
	// DataCenters are those that may do, in order, none for any. OneByOne makes
	// each an attempt of its own, outside the types unless they are InOrder.
	DataCenters      []string
	SplitDataCenters bool
	// Countries are codes of two letters, none for any.
	Countries []string
	CUDA      CUDA
	// MinMemoryGB and MinVCPUs are the least figures per GPU, 0 for any.
	MinMemoryGB, MinVCPUs int64
	// MaxPrice is the most that the pod may cost per hour, 0 for no bound.
	MaxPrice float64
}

const (
	// maxDefaultTypes is how many GPU types are tried when the caller names none.
	maxDefaultTypes = 10
	// maxUnknownTypes is how many GPU types that the catalog does not have a refusal names.
	maxUnknownTypes = 10
	// priceTolerance is by how much a price may exceed MaxPrice: clients compute
	// it with fewer digits than the catalog has.
	priceTolerance = 0.005
)

// choice is one GPU type or flavour in one cloud, and where it may be placed.
type choice struct {
	id, cloud string
	// record is the catalog's, nil when it has none or could not be read.
	record any
	level  int
	// centres are its data centres; anywhere tells that it needs none.
	centres  []string
	anywhere bool
}

// price is that of one GPU, or one vCPU.
func (ch choice) price() float64 {
	if p, ok := translate.Number(translate.At(ch.record, "price", "securePerVcpu")); ok {
		return p
	}
	return number(ch.record, "price", strings.ToLower(ch.cloud))
}

// candidates lists the create calls in the order of trial.
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
	for ch, centres := range c.nest(choices) {
		b := v2.PodOf(maps.Clone(base.Members))
		b.SetCloud(ch.cloud)
		if c.want.CPU {
			b.SetCPU(ch.id, c.want.Count)
		} else {
			c.setGPU(b, ch.id)
		}
		if len(centres) > 0 {
			b.SetDataCenters(centres)
		}
		label := ch.id
		if len(c.want.Clouds) > 1 {
			label += " " + ch.cloud
		}
		list = append(list, translate.Candidate{
			Label: label, Request: &translate.Request{Operation: "createPod", Body: b.Members, Origin: c.origin()},
		})
		if len(list) == translate.MaxCandidates {
			break // the rest would not be tried
		}
	}
	return list, nil
}

// nest combines choices and data centres, in the order of trial.
func (c *podCreate) nest(choices []choice) iter.Seq2[choice, []string] {
	return func(yield func(choice, []string) bool) {
		in := func(ch choice, centre string) bool {
			return !slices.Contains(ch.centres, centre) || yield(ch, []string{centre})
		}
		switch {
		case !c.want.SplitDataCenters || len(c.want.DataCenters) < 2:
			for _, ch := range choices {
				if !yield(ch, ch.centres) {
					return
				}
			}
		case c.want.KeepOrder:
			for _, ch := range choices {
				for _, centre := range c.want.DataCenters {
					if !in(ch, centre) {
						return
					}
				}
			}
		default:
			for _, centre := range c.want.DataCenters {
				for _, ch := range choices {
					if !in(ch, centre) {
						return
					}
				}
			}
		}
	}
}

// setGPU writes the gpu member. The count is always sent: left out, it was seen to
// fail as a shortage.
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

// gpuChoices are the GPU types to try in their clouds.
func (c *podCreate) gpuChoices(ctx context.Context) ([]choice, error) {
	offered, there := map[string][]any{}, map[string][]any{}
	for _, cloud := range c.want.Clouds {
		var err error
		offered[cloud], there[cloud], err = c.offers(ctx, cloud)
		if err != nil && (len(c.want.Types) == 0 || len(c.want.Countries) > 0 || c.want.MaxPrice > 0) {
			return nil, err // nothing else can vouch for the country or the price
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
				centres: c.want.DataCenters, anywhere: len(c.want.DataCenters) == 0,
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

// affords reports whether a choice is known to cost no more than the caller will
// pay.
func (c *podCreate) affords(ch choice) bool {
	return c.want.MaxPrice <= 0 || ch.record != nil && ch.price()*float64(c.want.Count) <= c.want.MaxPrice+priceTolerance
}

// offers lists the GPU types of a cloud, and those of them in the countries the
// caller allows.
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

// cheapest are the types to try when the caller named none: offered in the cloud,
// in that number, with stock.
func (c *podCreate) cheapest(types []any) []string {
	cloud := strings.ToLower(c.want.Clouds[0])
	fit := slices.DeleteFunc(slices.Clone(types), func(t any) bool {
		return !translate.Flag(t, cloud) || translate.Whole(t, "maxCount", cloud) < c.want.Count || translate.Text(t, "availability") == "NONE"
	})
	fit = ByPrice(fit, "price", cloud)
	return IDs(fit[:min(len(fit), maxDefaultTypes)])
}

// dropUnknown leaves out the types that the catalog does not have. A filtered
// list may lack a type for another reason, so the plain one decides.
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
		c.Warn(c.want.TypesField, id+meant+", skipped")
		if len(lacking) < maxUnknownTypes {
			lacking = append(lacking, translate.Clip(id, 64)+meant)
		}
	}
	if len(c.want.Types) == 0 {
		return invalid("", "%s: %s", c.Quirks.UnknownTypes, strings.Join(lacking, ", "))
	}
	return nil
}

// didYouMean returns the end of a sentence about a name that abbreviates GPU types of a list. It returns "" for any other name.
func didYouMean(name string, types []any) string {
	if translate.ByID(types, name) != nil {
		return "" // it is known, and not offered where it is asked for
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

// IsCountry reports whether a code has the form of a country's: two capital
// letters.
func IsCountry(code string) bool { return countryPattern.MatchString(code) }

func (c *podCreate) checkCountries() error {
	for _, code := range c.want.Countries {
		if !IsCountry(code) {
			return invalid(c.Quirks.CountriesField, "%.20q is not a code of two capital letters", code)
		}
	}
	return nil
}

// locate limits a choice to the data centres of its catalog record and reports
// whether any is left. On the community cloud a type can be available without
// naming a centre; then it is placed without a pin.
func (c *podCreate) locate(ch *choice, record any) bool {
	named := IDs(translate.Items(record, "dataCenters"))
	if len(named) == 0 {
		loose := ch.cloud == v2.Community && ch.anywhere && record != nil && translate.Text(record, "availability") != "NONE"
		if loose {
			c.Warn(c.Quirks.CountriesField, ch.id+" is placed by the catalog's word that it is there, without a data centre")
		}
		return loose
	}
	return ch.within(named)
}

// within limits a choice to data centres and reports whether any is left.
func (ch *choice) within(allowed []string) bool {
	if ch.anywhere {
		ch.centres, ch.anywhere = allowed, false
	} else {
		ch.centres = slices.DeleteFunc(slices.Clone(ch.centres), func(id string) bool { return !slices.Contains(allowed, id) })
	}
	return len(ch.centres) > 0
}

// cpuChoices are the flavours to try.
func (c *podCreate) cpuChoices(ctx context.Context) ([]choice, error) {
	flavours, records := c.want.Types, []any(nil)
	if !c.want.SkipCatalogCheck || c.want.MaxPrice > 0 {
		var err error
		w := &FlavourInput{IDs: c.want.Types, Field: c.want.TypesField, VCPUs: c.want.Count, VCPUsField: c.Quirks.VCPUsField, MemoryGB: c.want.MemoryGB}
		if flavours, records, err = c.Flavours(ctx, w, "POD", "securePerVcpu", translate.MaxCandidates); err != nil {
			return nil, err
		}
	}
	var allowed []string
	if len(c.want.Countries) > 0 { // the CPU catalog knows none; the GPU one names their centres
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
		ch := choice{
			id: id, cloud: v2.Secure, record: translate.ByID(records, id), centres: c.want.DataCenters, anywhere: len(c.want.DataCenters) == 0,
		}
		if !c.affords(ch) || len(c.want.Countries) > 0 && !ch.within(allowed) {
			continue
		}
		ch.level = translate.LevelIn(ch.record, ch.centres)
		choices = append(choices, ch)
	}
	return choices, nil
}
