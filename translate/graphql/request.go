package graphql

import (
	"mime"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
)

// operation is a prepared request.
type operation struct {
	*engine.Operation[*exchange]
	// creates reports whether the operation can create a pod or cluster, which needs a longer timeout.
	creates bool
	// public reports whether the operation needs no credential.
	public bool
	// unsupportedOnly reports whether v2 supports none of the root fields. Their refusals are not confidential.
	unsupportedOnly bool
	// brand is the document's name for the platform, or "".
	brand string
}

// readRequest reads the body of a POST.
func readRequest(in *translate.Incoming) (r engine.Request, f *fault) {
	if doc, ok := in.Body.(string); ok {
		if t, _, err := mime.ParseMediaType(in.Header.Get("Content-Type")); err == nil && t == "application/graphql" {
			return engine.Request{Query: doc}, nil // the body is the document itself
		}
	}
	m, ok := in.Body.(map[string]any)
	switch _, batch := in.Body.([]any); {
	case batch:
		return r, badInput("batched requests are not supported, send one request at a time")
	case !ok:
		return r, badInput(`the request body must be a JSON object with the member "query"`)
	}
	if r.Query, ok = m["query"].(string); !ok || r.Query == "" {
		return r, badInput(`the member "query" must be a non-empty string`)
	}
	if r.Operation, ok = m["operationName"].(string); !ok && m["operationName"] != nil {
		return r, badInput(`the member "operationName" must be a string`)
	}
	if r.Variables, ok = m["variables"].(map[string]any); !ok && m["variables"] != nil {
		return r, badInput(`the member "variables" must be an object`)
	}
	return r, nil
}

// parse parses a request, if in does not contain its parsed form yet.
func (a *API) parse(in *translate.Incoming) (*engine.Document, *fault) {
	if doc, ok := in.Parsed.(*engine.Document); ok {
		return doc, nil
	}
	r, f := readRequest(in)
	if f != nil {
		return nil, f
	}
	doc := a.engine.Parse(r)
	in.Parsed = doc
	return doc, nil
}

// prepare converts a request to an operation, or returns the faults in it.
func (a *API) prepare(in *translate.Incoming) (*operation, []*fault) {
	doc, f := a.parse(in)
	if f != nil {
		return nil, []*fault{f}
	}
	plan, refused := a.engine.Prepare(doc)
	if refused != nil {
		faults := make([]*fault, len(refused))
		for i, err := range refused {
			faults[i] = asFault(err)
		}
		return nil, faults
	}
	op, f := a.classify(plan)
	if f != nil {
		return nil, []*fault{f}
	}
	op.brand = a.naming.brandIn(doc.Query)
	return op, nil
}

// classify determines the properties of an operation and limits the number of mutations.
func (a *API) classify(plan *engine.Operation[*exchange]) (*operation, *fault) {
	op := &operation{Operation: plan, public: true, unsupportedOnly: true}
	mutations, paid := 0, 0
	for _, name := range plan.Roots() {
		_, nowhere := unsupportedReason(name)
		op.public = op.public && public(name)
		op.unsupportedOnly = op.unsupportedOnly && op.public && nowhere
		op.creates = op.creates || rootFields()[name].creates
		if plan.Removed || !plan.Mutates() || name == "__typename" {
			continue
		}
		if mutations++; rootFields()[name].pays {
			paid++
		}
	}
	switch {
	case paid > 1:
		return nil, asFault(engine.LimitExceeded("paid_mutations", 1, "root mutation that can cost money"))
	case mutations > a.cfg.Limits.RootMutations:
		return nil, asFault(engine.LimitExceeded("root_mutations", a.cfg.Limits.RootMutations, "root mutations"))
	}
	return op, nil
}
