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

// reservedName refuses a new secret whose name begins with the name of the platform, in any letter case.
func reservedName(ex *Exchange) error {
	body, _ := ex.Body.Doc.(map[string]any)
	name, _ := body["name"].(string)
	prefix := ex.Tenant.PlatformName
	if ex.Operation.ID != "createSecret" || prefix == "" || len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return nil
	}
	p := problem.RuleBroken.New("secret names that begin with the platform's name are reserved")
	p.Errors = []string{"$.name: must not begin with " + prefix + " (in any letter case)"}
	return p
}

// secrets returns 403 for a resource that refers to secrets that the caller may not read. It returns the same response for missing secrets
// and malformed references, so that the response does not reveal the secrets of other callers.
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
	found := ex.secretReferences()
	if len(found) == 0 {
		return nil
	}
	for _, read := range []readFunc{f.Reader.ReadCached, f.Reader.Read} { // the cached list may lack a new secret
		readable, err := f.readable(ctx, ex, read)
		if err != nil {
			return err
		}
		if found = slices.DeleteFunc(found, func(s operation.SecretReference) bool { return readable[strings.ToLower(s.Name)] }); len(found) == 0 {
			return nil
		}
	}
	p := problem.Forbidden.Newf("%s: refers to a secret that does not exist for this caller", JSONPath(found[0].Pointer)) // v1 shows only the detail
	for _, s := range found {
		if s.Pointer == "/value" {
			s.Name = "" // a part of the value of a secret, which a refusal must not repeat
		}
		p.Errors = append(p.Errors, fmt.Sprintf("%s: refers to the secret %q, which does not exist for this caller", JSONPath(s.Pointer), s.Name))
	}
	return p
}

// secretReferences returns the placeholders in the resulting state and in the value of a secret.
func (ex *Exchange) secretReferences() []operation.SecretReference {
	body, _ := ex.Body.Doc.(map[string]any)
	found := inWrittenCommand(body, operation.SecretReferences(ex.Evaluation.Input.Resource.After))
	if row, _ := operation.Lookup(ex.Operation.ID); row.Kind == operation.KindSecret {
		found = append(found, operation.SecretReferences(map[string]any{"value": body["value"]})...)
	}
	return found
}

// inWrittenCommand moves the placeholders of a command to the members that the caller sent. A resulting state contains the command twice:
// as args, and as cmd and entrypoint. Placeholders that were derived from a sent member are removed. A placeholder that only the derived
// form contains, for example because of quotes in args, is kept with the pointer of the sent member.
func inWrittenCommand(body map[string]any, found []operation.SecretReference) []operation.SecretReference {
	written, derived := []string{"args"}, []string{"cmd", "entrypoint"}
	switch {
	case body["args"] != nil:
	case body["cmd"] != nil:
		written, derived = derived, written
	case body["entrypoint"] != nil:
		written, derived = []string{"entrypoint", "cmd"}, written
	}
	in := func(members []string, s operation.SecretReference) bool {
		member, _, _ := strings.Cut(strings.TrimPrefix(s.Pointer, "/"), "/")
		return slices.Contains(members, member)
	}
	var out []operation.SecretReference
	for _, s := range found {
		if in(derived, s) {
			if slices.ContainsFunc(found, func(o operation.SecretReference) bool { return o.Name == s.Name && in(written, o) }) {
				continue
			}
			s.Pointer = "/" + written[0]
		}
		out = append(out, s)
	}
	return out
}

// readFunc is Reader.Read or Reader.ReadCached.
type readFunc func(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Response, error)

// readable returns the lower-case names of secrets that the caller may read. The platform may ignore letter case, so if several names
// differ only in case, the caller must be allowed to read all of them.
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

// listedSecrets returns the names and IDs of the account's secrets.
func (f *EvaluatePolicies) listedSecrets(ctx context.Context, ex *Exchange, read readFunc) (names, ids []string, err error) {
	doc, refusal, err := read(ctx, ex, f.Secrets, nil)
	if err == nil && refusal != nil {
		err = fmt.Errorf("%w: the request for the list of secrets returned status %d", upstream.ErrUnreachable, refusal.Status)
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

// refuseSimilarName responds to a call that creates a secret with the platform's 409 if the name differs from an existing name only in
// letter case. If both names existed, callers could not refer to either secret; see readable. The platform itself refuses an equal name,
// after repeats have been recognised.
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

// secretError replaces the platform's error about a failed change of a secret, because it may repeat the value or reveal other callers'
// secrets. Other errors are unchanged.
func (ex *Exchange) secretError(p *problem.Problem) {
	row, _ := operation.Lookup(ex.Operation.ID)
	if row.Kind != operation.KindSecret || !row.Verb.HasResultState() {
		return
	}
	p.Title, p.Errors = http.StatusText(p.Status), nil
	body, _ := ex.Body.Doc.(map[string]any)
	_, value := body["value"]
	_, description := body["description"]
	switch {
	case row.Verb == operation.VerbCreate && p.Status == http.StatusConflict:
		p.Detail = "the name is already used by a secret in the platform account"
	case row.Verb == operation.VerbUpdate && value && description:
		p.Detail = "the platform failed to change value and description together; the value may have changed; send the request again"
	default:
		p.Detail = "the platform refused the secret; its message is withheld because it may contain the value"
	}
}
