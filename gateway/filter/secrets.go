package filter

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// reservedName returns the refusal of a new secret whose name begins with the name of the platform, in any letter case.
func reservedName(ex *Exchange) error {
	body, _ := ex.Body.Doc.(map[string]any)
	name, _ := body["name"].(string)
	prefix := ex.Tenant.PlatformName
	if ex.Operation.ID != "createSecret" || prefix == "" || len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return nil
	}
	p := problem.RuleBroken.New("the platform reserves names of secrets that begin with its own name")
	p.Errors = []string{"$.name: must not begin with " + prefix + ", in any letter case"}
	return p
}

// secrets refuses with 403 a resource with placeholders for secrets that the caller may not read. A secret that does not exist, and a
// placeholder whose name cannot be read, get the same refusal, so that it does not reveal the secrets of others.
func (f *EvaluatePolicies) secrets(ctx context.Context, ex *Exchange) error {
	iso := &ex.Tenant.Isolation
	if !iso.Read.restricts() {
		return nil
	}
	if ex.Operation.ID == "createSecret" {
		if err := f.refuseSimilarName(ctx, ex); err != nil || ex.Response != nil {
			return err
		}
	}
	if iso.exempts(ex.Caller) {
		return nil
	}
	found := operation.SecretReferences(ex.Evaluation.Input.Resource.After)
	if len(found) == 0 {
		return nil
	}
	for _, read := range []readFunc{f.Reader.ReadCached, f.Reader.Read} { // a recent list may lack a new secret
		readable, err := f.readable(ctx, ex, read)
		if err != nil {
			return err
		}
		if found = slices.DeleteFunc(found, func(s operation.SecretReference) bool { return readable[strings.ToLower(s.Name)] }); len(found) == 0 {
			return nil
		}
	}
	p := problem.Forbidden.Newf("%s refers to a secret that does not exist for this caller", JSONPath(found[0].Pointer)) // v1 shows nothing else
	for _, s := range found {
		p.Errors = append(p.Errors, fmt.Sprintf("%s: refers to the secret %q, which does not exist for this caller", JSONPath(s.Pointer), s.Name))
	}
	return p
}

// readFunc is a way to read an object: Recall or Read of a Reader.
type readFunc func(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Response, error)

// readable returns the names of secrets that the caller may read, in lower case: the platform may ignore letter case, so all secrets
// whose names differ in nothing else must be readable.
func (f *EvaluatePolicies) readable(ctx context.Context, ex *Exchange, read readFunc) (map[string]bool, error) {
	names, ids, err := f.listedSecrets(ctx, ex, read)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	owners, err := ex.Ports.Ledger.Owners(ctx, ex.Caller.Org, ids)
	if err != nil {
		return nil, ownerUnknown(err)
	}
	iso, all := &ex.Tenant.Isolation, make(map[string]bool, len(names))
	for i, name := range names {
		name = strings.ToLower(name)
		before, seen := all[name]
		all[name] = (before || !seen) && iso.allows(iso.Read, owners[i], ex.Caller)
	}
	return all, nil
}

// listedSecrets returns the names of the account's secrets, and their ids.
func (f *EvaluatePolicies) listedSecrets(ctx context.Context, ex *Exchange, read readFunc) (names, ids []string, err error) {
	doc, refusal, err := read(ctx, ex, f.Secrets, nil)
	if err == nil && refusal != nil {
		err = fmt.Errorf("%w: the list of secrets was answered %d", upstream.ErrUnreachable, refusal.Status)
	}
	if err != nil {
		return nil, nil, ownerUnknown(err)
	}
	answer, _ := doc.(map[string]any)
	list, _ := answer["secrets"].([]any)
	names, ids = make([]string, len(list)), make([]string, len(list))
	for i, item := range list {
		record, _ := item.(map[string]any)
		names[i], _ = record["name"].(string)
		ids[i], _ = record["id"].(string)
	}
	return names, ids, nil
}

// refuseSimilarName answers a create of a secret as the platform answers one whose name is taken, if the name of another secret differs from it
// in letter case alone: with both, the callers of neither could refer to their own; see readable. The platform answers for an equal name,
// and a repeated create is told there.
func (f *EvaluatePolicies) refuseSimilarName(ctx context.Context, ex *Exchange) error {
	names, _, err := f.listedSecrets(ctx, ex, f.Reader.Read)
	if err != nil {
		return err
	}
	body, _ := ex.Body.Doc.(map[string]any)
	name, _ := body["name"].(string)
	if !slices.Contains(names, name) && slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) }) {
		ex.Response = &Response{Status: http.StatusConflict, Header: http.Header{}}
		ex.Response.Body, ex.Event.Detail = ex.rewriteError(upstream.Credential{})
		ex.Response.Header.Set("Content-Type", problem.ContentType)
	}
	return nil
}

// secretError replaces what the platform says about a failed change of a secret, in which the value or another caller's secret may
// be repeated. Other answers stay.
func (ex *Exchange) secretError(p *problem.Problem) {
	row, _ := operation.Of(ex.Operation.ID)
	if row.Kind != operation.KindSecret || !row.Verb.HasAfter() {
		return
	}
	p.Title, p.Errors = http.StatusText(p.Status), nil
	body, _ := ex.Body.Doc.(map[string]any)
	_, value := body["value"]
	_, description := body["description"]
	switch {
	case row.Verb == operation.VerbCreate && p.Status == http.StatusConflict:
		p.Detail = "the name is taken: names of secrets are unique in the platform's account"
	case row.Verb == operation.VerbUpdate && value && description:
		p.Detail = "the platform failed to change value and description together: the value may have been replaced; send the change again"
	default:
		p.Detail = "the platform refused; its words may repeat the value and are withheld"
	}
}
