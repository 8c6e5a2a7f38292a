package filter

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// reservedLabel returns 400 for calls that set or filter by the gateway's own labels.
func reservedLabel(ex *Exchange) error {
	if row, _ := operation.Lookup(ex.Operation.ID); !operation.SupportsLabels(row.Kind) {
		return nil
	}
	p := problem.BadRequest.New("labels whose keys begin with " + operation.LabelPrefix + " are reserved for the gateway")
	for _, label := range ex.Query["labels"] {
		if strings.HasPrefix(label, operation.LabelPrefix) {
			p.Errors = append(p.Errors, "query.labels: "+p.Detail)
		}
	}
	body, _ := ex.Body.Doc.(map[string]any)
	labels, _ := body["labels"].(map[string]any)
	for key := range labels {
		if strings.HasPrefix(key, operation.LabelPrefix) {
			p.Errors = append(p.Errors, "$.labels: "+p.Detail)
		}
	}
	if len(p.Errors) == 0 {
		return nil
	}
	p.Errors = p.Errors[:1]
	return p
}

// addLabels returns the body of a call that creates a resource, with labels for the owner and the call. The labels allow the gateway to
// find the resource if the response is lost. The call label is the ID of the intent, or the ID of the hold if there is no intent, or the
// decision ID if there is neither. Bodies of other calls are returned unchanged.
func (ex *Exchange) addLabels(row operation.Spec, doc any) any {
	body, isObject := doc.(map[string]any)
	if !isObject || row.Verb != operation.VerbCreate || !operation.SupportsLabels(row.Kind) {
		return doc
	}
	call := ex.DecisionID
	switch {
	case ex.Idempotency != nil:
		call = ex.Idempotency.Intent.ID
	case ex.Cost.Reservation != nil:
		call = ex.Cost.Reservation.Hold
	}
	given, _ := body["labels"].(map[string]any)
	labels := map[string]any{operation.CallLabel: call, operation.TeamLabel: ex.Caller.Team, operation.KeyLabel: ex.Caller.Key}
	maps.DeleteFunc(labels, func(_ string, value any) bool { return value == "" })
	maps.Copy(labels, given)
	body = maps.Clone(body)
	body["labels"] = labels
	return body
}

// Response removes the gateway's labels from the records in a response. It runs after all stages that read the labels.
func (Labels) Response(_ context.Context, ex *Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	a := ex.Response
	if !operation.SupportsLabels(row.Kind) || a.Status >= http.StatusMultipleChoices ||
		!bytes.Contains(a.Body, []byte(operation.LabelPrefix)) {
		return nil
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	if err != nil {
		return problem.UpstreamFailed.New("the platform returned a response that cannot be parsed").Because(err)
	}
	object, _ := doc.(map[string]any)
	list, _ := object[row.ListMember].([]any)
	for _, item := range append(list, doc) {
		record, _ := item.(map[string]any)
		labels, _ := record["labels"].(map[string]any)
		maps.DeleteFunc(labels, func(key string, _ any) bool { return strings.HasPrefix(key, operation.LabelPrefix) })
	}
	a.Header.Del("Content-Length")
	a.Body, err = strictjson.Append(nil, doc)
	return err
}
