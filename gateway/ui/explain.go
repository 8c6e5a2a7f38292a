package ui

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// dryRun is a question and, once it was asked, its answer.
type dryRun struct {
	Asked  operator.ExplainBody
	Report *explain.Report
}

// asked reads a question from the parameters of a page or a form.
func (v *visit) asked() operator.ExplainBody {
	method := v.r.FormValue("method")
	method = cmp.Or(method, http.MethodPost)
	return operator.ExplainBody{Method: method, Path: v.r.FormValue("path"), Body: v.r.FormValue("body"), Org: v.org, Key: v.r.FormValue("key")}
}

// blank shows the form of a dry run, filled in as far as the URL says.
func blank(v *visit) (any, int, string) { return dryRun{Asked: v.asked()}, 0, "" }

// explain shows the outcome of a hypothetical request. Nothing is sent or counted.
func (c *Console) explain(v *visit) {
	d := dryRun{Asked: v.asked()}
	text, err := json.Marshal(d.Asked)
	if err != nil {
		v.fail(http.StatusBadRequest, err.Error())
		return
	}
	status, fault := http.StatusOK, ""
	report, err := reply[explain.Report](v, explainRow, nil, text)
	if err != nil {
		status, fault = adminapi.StatusOf(err)
	} else {
		d.Report = &report
	}
	v.render(status, "explain", frame{Title: "Dry run", Page: "explain", Fault: fault, Data: d})
}
