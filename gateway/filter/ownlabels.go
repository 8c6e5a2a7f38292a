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

// reservedLabel refuses with 400 a call that sets a label of the gateway, or filters by one.
func reservedLabel(ex *Exchange) error {
	if row, _ := operation.Of(ex.Operation.ID); !operation.Labelled(row.Kind) {
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

// addLabels returns the body of a create with labels that name its owner and its call: the id of its hold and of its intent, by
// which the resource is found if the response is lost. Other bodies are returned as they are.
func (ex *Exchange) addLabels(row operation.Row, doc any) any {
	body, isObject := doc.(map[string]any)
	if !isObject || row.Verb != operation.VerbCreate || !operation.Labelled(row.Kind) {
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

// Response removes the gateway's labels from records of labelled resources. All stages that read them have run before.
func (Labels) Response(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	a := ex.Response
	if !operation.Labelled(row.Kind) || a.Status >= http.StatusMultipleChoices || !bytes.Contains(a.Body, []byte(operation.LabelPrefix)) {
		return nil
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	if err != nil {
		return problem.UpstreamFailed.New("the platform's response cannot be read").Because(err)
	}
	object, _ := doc.(map[string]any)
	list, _ := object[row.List].([]any)
	for _, item := range append(list, doc) {
		record, _ := item.(map[string]any)
		labels, _ := record["labels"].(map[string]any)
		maps.DeleteFunc(labels, func(key string, _ any) bool { return strings.HasPrefix(key, operation.LabelPrefix) })
	}
	a.Header.Del("Content-Length")
	a.Body, err = strictjson.Append(nil, doc)
	return err
}
