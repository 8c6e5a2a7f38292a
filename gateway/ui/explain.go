package ui

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// dryRun holds a hypothetical request and, after its evaluation, the result as a request's page shows it.
type dryRun struct {
	head

	Asked  operator.ExplainBody
	Report *requestData
	// Keys are the IDs of keys to choose from.
	Keys []string
}

// Fields returns the fields of the form.
func (d dryRun) Fields() []field {
	methods := options([]string{"POST", "GET", "PATCH", "PUT", "DELETE"}, d.Asked.Method)
	for i := range methods {
		methods[i].Title = methods[i].Value
	}
	body := d.Asked.Body
	if d.Asked.Path == "" {
		body = cmp.Or(body, exampleBody)
	}
	return []field{
		{Name: "method", ID: "method", Label: "Method", Type: "select", Options: methods},
		{Name: "path", ID: "path", Label: "Path", Value: cmp.Or(d.Asked.Path, "/v2/pods"), Required: true, Wide: true},
		{Name: "key", ID: "key", Label: "Key ID of the caller", Value: d.Asked.Key, Required: true, Suggest: d.Keys},
		{
			Name: "body", ID: "body", Label: "Body", Type: "textarea", Rows: max(4, min(12, strings.Count(body, "\n")+2)),
			Value: body, Wide: true, Hint: d.hint(),
		},
	}
}

// hint explains an empty body or the example.
func (d dryRun) hint() string {
	switch {
	case d.Asked.Body != "" || d.Report != nil:
		return ""
	case d.Asked.Path != "":
		return "The body of the recorded request was not stored. Paste the body here."
	}
	return "An example that creates a pod. Replace it with the body of your request."
}

// exampleBody is a request that creates a pod.
const exampleBody = `{"name": "train", "image": "ubuntu:24.04", "gpu": {"id": "NVIDIA L4", "count": 1}}`

// Result returns the result as a status. An invalid request is not shown as a denial.
func (d dryRun) Result() status {
	if s := d.Report.Status; s == http.StatusBadRequest || s == http.StatusUnprocessableEntity {
		return status{levelBad, "Invalid request"}
	}
	return statusOf(d.Report.Verdict)
}

// asked returns the hypothetical request from the parameters of a page or form.
func (v *visit) asked() operator.ExplainBody {
	method := cmp.Or(v.r.FormValue("method"), http.MethodPost)
	return operator.ExplainBody{
		Method: method, Path: v.r.FormValue("path"), Body: v.r.FormValue("body"),
		Org: v.org, Key: v.r.FormValue("key"),
	}
}

// blank shows the form of a dry run, prefilled from the address.
func blank(v *visit) (any, int, string) { return v.dryRun(), 0, "" }

// dryRun returns the hypothetical request before its evaluation.
func (v *visit) dryRun() dryRun {
	d := dryRun{Asked: v.asked(), head: head{Text: "See the result of a request without sending it. Nothing is created or counted."}}
	if v.may(keyRow) {
		for _, k := range ask[callers.List](v, keyRow, nil).Is.Keys {
			d.Keys = append(d.Keys, k.ID)
		}
	}
	return d
}

// explain shows the result of a hypothetical request. The request is neither sent to the platform nor counted.
func (v *visit) explain() error {
	d := v.dryRun()
	text, err := json.Marshal(d.Asked)
	if err != nil {
		return err
	}
	report, err := reply[explain.Report](v, explainRow, nil, text)
	status, fault := adminapi.StatusOf(err)
	if err == nil {
		view := v.described(&report)
		view.Sent, d.Report = d.Asked.Body, &view
	}
	v.readBadges()
	v.render(cmp.Or(status, http.StatusOK), "dryrun", frame{Title: "Dry run", Page: "dryrun", Fault: fault, Data: d})
	return nil
}
