package filter

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// CheckOwnership prevents callers from reading or changing resources of other callers, if the organisation isolates its callers. Hidden
// resources look like missing resources: the gateway replaces the ID of a hidden resource by an unused ID, so that the platform responds in
// the same way as for a missing resource. CheckOwnership runs before EvaluatePolicies, which reads the resources that a call refers to.
type CheckOwnership struct {
	Reader *Reader
}

// Name implements Filter.
func (*CheckOwnership) Name() string { return "check ownership" }

// reference is an ID in a call and its location.
type reference struct {
	operation.Reference
	id string
}

// Request replaces hidden IDs with unused ones. If the ledger is unavailable or incomplete, it returns 503 for calls that depend on
// ownership. Even then, the caller may stop resources, and may delete a resource if this gateway remembers that the caller has access to
// it. It returns 403 for the costs of the whole account, from which it cannot omit hidden resources.
func (f *CheckOwnership) Request(ctx context.Context, ex *Exchange) error {
	iso := &ex.Tenant.Isolation
	row, _ := operation.Lookup(ex.Operation.ID)
	ex.Out.Buffered = ex.Out.Buffered || iso.Read.restricts() && (row.ListMember != "" || row.SubmitsJob && !row.Synchronous)
	if iso.exempts(ex.Caller) {
		return nil
	}
	if row.AccountWide && iso.Read.restricts() {
		return problem.Forbidden.New("isolation hides the bills of the whole account; read the bills of pods, serverless, network volumes or clusters")
	}
	named := ex.references(row)
	if row.ListMember != "" && iso.Read.restricts() {
		ex.Access.visible = func(ctx context.Context, records []map[string]any) ([]bool, error) {
			return f.visible(ctx, ex, row, records)
		}
	}
	ids, jobs := ex.splitJobs(named)
	owners, err := f.owners(ctx, ex, ids, jobs...)
	if err != nil {
		switch verb := row.EffectiveVerb(ex.Body.Doc); {
		case verb == operation.VerbStop:
			ex.Event.Cause = err
			return nil
		case verb == operation.VerbDelete && len(jobs) == 0 && ex.ownsRemembered(named, &owners):
			ex.Event.Cause = err
		default:
			return err
		}
	}
	for i, n := range named {
		if err := f.enforce(ctx, ex, n, owners[i]); err != nil {
			return err
		}
	}
	return nil
}

// ownsRemembered sets owners to the remembered owners of the named resources and reports whether the caller may access all of them.
func (ex *Exchange) ownsRemembered(named []reference, owners *[]ledger.Owner) bool {
	ids, _ := ex.splitJobs(named)
	*owners = ex.Ports.Ledger.CachedOwners(ex.Caller.Org, ids)
	iso := &ex.Tenant.Isolation
	for i, owner := range *owners {
		if owner == (ledger.Owner{}) || !iso.allows(iso.scope(named[i].Changes), owner, ex.Caller) {
			return false
		}
	}
	return true
}

// enforce hides an ID that the caller may not access. If the ledger does not grant access, enforce looks for the owner at the platform. For
// an ID that will be hidden, it looks up an unused ID, so that hidden and missing resources cause the same requests to the platform.
func (f *CheckOwnership) enforce(ctx context.Context, ex *Exchange, n reference, owner ledger.Owner) error {
	iso := &ex.Tenant.Isolation
	known, reach := owner != (ledger.Owner{}), iso.scope(n.Changes)
	admitted := known && iso.allows(reach, owner, ex.Caller)
	if !admitted {
		asked := n
		if known || !isCanonicalID(n.id) {
			asked.id = unusedID(n.id)
		}
		found, open, err := f.ownerFromPlatform(ctx, ex, asked)
		if err != nil {
			return err
		}
		if asked.id == n.id {
			owner, admitted = found, open || iso.allows(reach, found, ex.Caller)
		}
	}
	if n.In == operation.InPath && n.Kind != operation.KindJob {
		ex.Access.owner = &owner
	}
	if !admitted {
		ex.hide(n)
		ex.Access.hiddenNotes = append(ex.Access.hiddenNotes,
			fmt.Sprintf("%s %s belongs to %s, so it does not exist for this caller", n.Kind, n.id, owner))
	}
	return nil
}

// isCanonicalID reports whether an ID uses only the characters of the platform's IDs (reference platform-v2, section 1). The ledger
// compares IDs byte by byte, while the platform may treat "P1", "p1." or "p1 " as p1.
func isCanonicalID(id string) bool {
	const longest = 64
	return len(id) <= longest && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// references lists the IDs in a call whose access must be checked.
func (ex *Exchange) references(row operation.Spec) []reference {
	var named []reference
	for _, ref := range row.References() {
		note := func(id string) string {
			if id != "" {
				named = append(named, reference{ref, id})
			}
			return id
		}
		switch {
		case !ex.Tenant.Isolation.scope(ref.Changes).restricts():
		case ref.In == operation.InPath:
			note(ex.Params[ref.Name])
		case ref.In == operation.InQuery:
			for _, id := range ex.Query[ref.Name] {
				note(id)
			}
		default:
			ref.Replace(ex.Body.Doc, note)
		}
	}
	return named
}

// splitJobs separates references into IDs of resources and jobs. Jobs come last in named.
func (ex *Exchange) splitJobs(named []reference) (ids []string, jobs []ledger.Job) {
	for _, n := range named {
		if n.Kind == operation.KindJob {
			jobs = append(jobs, ledger.Job{Endpoint: ex.Params["id"], ID: n.id})
		} else {
			ids = append(ids, n.id)
		}
	}
	return ids, jobs
}

// owners returns the owners of the resources, followed by the owners of the jobs.
func (*CheckOwnership) owners(ctx context.Context, ex *Exchange, ids []string, jobs ...ledger.Job) ([]ledger.Owner, error) {
	if len(ids)+len(jobs) == 0 {
		return nil, nil
	}
	owners, err := ex.Ports.Ledger.Owners(ctx, ex.Caller.Org, ids, jobs...)
	if err != nil {
		return nil, ownerUnknown(err)
	}
	return owners, nil
}

func ownerUnknown(cause error) error {
	return problem.LedgerUnavailable.New("the owner of this resource cannot be determined right now; try again later").With("Retry-After",
		"1").Because(cause)
}

// ownerFromPlatform determines the owner of a resource that the ledger does not know. A pod may belong to a cluster, and a job belongs to
// the owner of its endpoint. open is true for public templates and public targets of runs.
func (f *CheckOwnership) ownerFromPlatform(ctx context.Context, ex *Exchange, n reference) (owner ledger.Owner, open bool, err error) {
	row, _ := operation.Lookup(ex.Operation.ID)
	switch {
	case n.Kind == operation.KindPod && n.In == operation.InPath:
		pod, err := f.object(ctx, ex, n)
		cluster, _ := pod["cluster"].(map[string]any)
		id, _ := cluster["id"].(string)
		if err != nil || id == "" {
			return owner, false, err
		}
		owners, err := f.owners(ctx, ex, []string{id})
		if err != nil {
			return owner, false, err
		}
		return owners[0], false, nil
	case operation.SupportsLabels(n.Kind): // the ledger forgets ended resources, the platform does not
		record, err := f.object(ctx, ex, n)
		return ledger.LabelledOwner(record), false, err
	case n.Kind == operation.KindJob:
		return *ex.Access.owner, false, nil
	case !ex.Tenant.Isolation.Unowned:
		return owner, false, nil
	case n.Kind == operation.KindTemplate:
		template, err := f.object(ctx, ex, n)
		return owner, template["public"] == true && !n.Changes, err
	case ex.Dialect.IsRun() && catalog.IsPublicModel(n.id):
		return owner, !row.AffectsAllJobs, nil
	case ex.Dialect.IsRun():
		endpoint, err := f.object(ctx, ex, n)
		return owner, endpoint == nil && !row.AffectsAllJobs, err
	}
	return owner, false, nil
}

// object reads a resource, nil if it does not exist. It does not use the read cache, because unused IDs are read from the platform each
// time as well.
func (f *CheckOwnership) object(ctx context.Context, ex *Exchange, n reference) (map[string]any, error) {
	doc, refusal, err := f.Reader.Read(ctx, ex, f.Reader.Gets[n.Kind], map[string]string{"id": n.id})
	if refusal != nil && refusal.Status != http.StatusNotFound {
		return nil, ownerUnknown(fmt.Errorf("%w: a read of the resource returned status %d", upstream.ErrUnreachable, refusal.Status))
	}
	object, _ := doc.(map[string]any)
	return object, err
}

// hide replaces an ID with an unused one.
func (ex *Exchange) hide(n reference) {
	if ex.Access.hidden == nil {
		ex.Access.hidden = make(map[string]string)
	}
	other := unusedID(n.id)
	ex.Access.hidden[other] = n.id
	ex.Out.Buffered = true
	swap := func(id string) string {
		if id == n.id {
			return other
		}
		return id
	}
	switch n.In {
	case operation.InPath:
		ex.Params = maps.Clone(ex.Params)
		ex.Params[n.Name] = other
	case operation.InQuery:
		ex.Query = maps.Clone(ex.Query)
		ex.Query[n.Name] = slices.Clone(ex.Query[n.Name])
		for i, id := range ex.Query[n.Name] {
			ex.Query[n.Name][i] = swap(id)
		}
	case operation.InBody:
		ex.Body.Doc = n.Replace(ex.Body.Doc, swap)
	}
}

// unusedID returns a random ID of the same form that no resource has.
func unusedID(id string) string {
	const least = 14
	return strings.ToLower(rand.Text())[:min(26, max(least, len(id)))]
}

// Response removes hidden resources from lists. Where the response echoes a replacement ID, it puts back the ID that the caller sent. It
// also stores the owner of a new job.
func (f *CheckOwnership) Response(ctx context.Context, ex *Exchange) error {
	a := ex.Response
	for other, id := range ex.Access.hidden {
		if quoted, err := strictjson.Append(nil, id); err == nil && bytes.Contains(a.Body, []byte(other)) {
			a.Body = bytes.ReplaceAll(a.Body, []byte(other), quoted[1:len(quoted)-1])
			a.Header.Del("Content-Length")
		}
	}
	iso := &ex.Tenant.Isolation
	row, _ := operation.Lookup(ex.Operation.ID)
	if row.SubmitsJob && iso.Read.restricts() && a.Relayed && a.Status < http.StatusMultipleChoices {
		f.rememberJob(ctx, ex)
	}
	if ex.Access.visible == nil || ex.Progress.page != nil || !a.Relayed || a.Status >= 300 || len(ex.references(row)) > 0 {
		return nil // pages were filtered when they were filled, and IDs in the query were already checked
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	answer, _ := doc.(map[string]any)
	list, ok := answer[row.ListMember].([]any)
	if err != nil || !ok {
		return problem.UpstreamFailed.New("the platform returned a list that cannot be parsed").Because(err)
	}
	records := make([]map[string]any, len(list))
	for i := range list {
		records[i], _ = list[i].(map[string]any)
	}
	shown, err := ex.Access.visible(ctx, records)
	if err != nil {
		return err
	}
	left := make([]any, 0, len(list))
	about := make(map[string]bool)
	for i, record := range records {
		if shown[i] {
			left, about[row.RecordOwner(record)] = append(left, list[i]), true
		}
	}
	if len(left) == len(list) {
		return nil
	}
	answer[row.ListMember] = left
	if meta, ok := answer["metadata"].(map[string]any); ok {
		recount(meta, left, len(about))
	}
	a.Header.Del("Content-Length")
	a.Body, err = strictjson.Append(nil, answer)
	return err
}

// visible reports for each record of a list whether the caller may see it.
func (f *CheckOwnership) visible(ctx context.Context, ex *Exchange, row operation.Spec, records []map[string]any) ([]bool, error) {
	named := make(map[string]ledger.Owner)
	for _, record := range records {
		if id := row.RecordOwner(record); id != "" {
			named[id] = ledger.Owner{}
		}
	}
	ids := slices.Collect(maps.Keys(named))
	owners, err := f.owners(ctx, ex, ids)
	if err != nil {
		return nil, err
	}
	for i, owner := range owners {
		named[ids[i]] = owner
	}
	iso, shown := &ex.Tenant.Isolation, make([]bool, len(records))
	for i, record := range records {
		owner := named[row.RecordOwner(record)]
		if operation.SupportsLabels(row.Kind) && owner == (ledger.Owner{}) {
			owner = ledger.LabelledOwner(record)
		}
		gone := row.Kind == operation.KindBilling && owner == ledger.Owner{} // the owner is no longer known
		shown[i] = !gone && iso.allows(iso.Read, owner, ex.Caller)
	}
	return shown, nil
}

// Notes implements Explainer.
func (*CheckOwnership) Notes(ex *Exchange, _ string) []string { return ex.Access.hiddenNotes }
