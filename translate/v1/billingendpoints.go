package v1

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// endpointFilter holds the filters of GET /v1/billing/endpoints that v2 does not have.
type endpointFilter struct {
	types, centres  []string
	image, template string
}

func (f endpointFilter) empty() bool {
	return len(f.types) == 0 && len(f.centres) == 0 && f.image == "" && f.template == ""
}

// endpointBilling reads v2's serverless billing, because v2's endpoint billing is about another product.
func endpointBilling(ctx context.Context, r *request) (*reply, error) {
	query := r.billingQuery()
	grouping := r.query.text("grouping", "endpointId", "podId", "gpuTypeId", "gpuId")
	filter := endpointFilter{
		types: r.query.texts("gpuTypeId"), centres: r.query.texts("dataCenterId"),
		image: r.query.text("imageName"), template: r.query.text("templateId"),
	}
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	if everywhere(filter.centres) {
		filter.centres = nil
	}
	only := r.query.text("endpointId")
	if only != "" {
		query.Set("serverlessId", only)
	}
	records, err := r.List(ctx, legacy.Purpose{Verb: "endpoint billing", Noun: legacy.NounEndpoint}, "listServerlessBilling", "records", query)
	if err != nil {
		return nil, err
	}
	r.warnDurations()
	if grouping == "podId" {
		r.WarnLost("grouping", "grouped by endpoint because the platform does not bill by worker")
	}
	byType := grouping == "gpuTypeId" || grouping == "gpuId"
	known := map[string]billedEndpoint{}
	if byType || !filter.empty() {
		if known, err = r.billedEndpoints(ctx); err != nil {
			return nil, err
		}
	}
	field := "endpointId"
	var types func(id string) string
	if byType {
		field = "gpuTypeId"
		types = r.endpointTypes(ctx, records, known)
	}
	sums := newLedger(field)
	for _, record := range records {
		id := translate.Text(record, "serverlessId")
		endpoint, live := known[id]
		if only != "" && id != only {
			continue
		}
		if !filter.empty() && !live {
			r.WarnLost("filter", "deleted endpoints cannot be filtered and are omitted")
			continue
		}
		if !filter.empty() && !endpoint.matches(filter) {
			continue
		}
		group := id
		if byType {
			group = types(id)
		}
		sums.add(record, group)
	}
	return ok(sums.records(func(_ *ledgerSum, record map[string]any) { record["timeBilledMs"] = 0 })), nil
}

// billedEndpoint holds the properties that the filters of endpoint billing check.
type billedEndpoint struct {
	types, centres  []string
	image, template string
	cpu             bool
}

// billedEndpoints returns the existing endpoints by id.
func (r *request) billedEndpoints(ctx context.Context) (map[string]billedEndpoint, error) {
	listed, err := r.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	notes := r.EndpointNotes(ctx, listed)
	types := r.poolTypes(ctx, listed...)
	known := make(map[string]billedEndpoint, len(listed))
	for _, body := range listed {
		e := v2.EndpointOf(body)
		note := notes[e.ID()]
		known[e.ID()] = billedEndpoint{
			types: typesOf(e, types, note.GPUTypeIDs), centres: e.DataCenters(),
			image: e.Image(), template: legacy.TemplateIDOf(e.ID(), note), cpu: e.IsCPU(),
		}
	}
	return known, nil
}

// matches reports whether an endpoint passes every filter. An endpoint without data centres may run anywhere and passes
// each filter by data centre.
func (e billedEndpoint) matches(f endpointFilter) bool {
	overlap := func(want, have []string) bool {
		return len(want) == 0 || slices.ContainsFunc(want, func(id string) bool { return slices.Contains(have, id) })
	}
	return overlap(f.types, e.types) && (len(e.centres) == 0 || overlap(f.centres, e.centres)) &&
		(f.image == "" || e.image == f.image) && (f.template == "" || e.template == f.template)
}

// kind returns the GPU type under which the endpoint's cost is reported, or "" if it has several.
func (e billedEndpoint) kind() string {
	switch {
	case e.cpu:
		return legacy.CPUType
	case len(e.types) == 1:
		return e.types[0]
	}
	return ""
}

// endpointTypes returns a function that maps the endpoint ids in billing records to GPU types. The function returns the current type of an
// existing endpoint, otherwise the stored type, otherwise the type that the ledger counted.
func (r *request) endpointTypes(ctx context.Context, records []any, live map[string]billedEndpoint) func(id string) string {
	known := make(map[string]string, len(live))
	for id, endpoint := range live {
		known[id] = cmp.Or(endpoint.kind(), legacy.UnknownType)
	}
	gone, _ := legacy.MissingTypes(records, "serverlessId", known)
	// If the store fails, the response is less exact.
	notes, _ := translate.FindNotes[translate.EndpointNote](ctx, r.Client, translate.KindEndpoint, gone)
	for id, note := range notes {
		known[id] = note.BilledType
	}
	r.AddLedgerTypes(ctx, records, "serverlessId", known)
	return func(id string) string { return cmp.Or(known[id], legacy.UnknownType) }
}
