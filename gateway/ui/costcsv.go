package ui

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// costCSV serves the costs of the explorer by bucket and group as CSV.
func (c *Console) costCSV(v *visit) {
	if v.enter(v.pageNamed("cost")); v.period.Fault != "" {
		v.fail(http.StatusBadRequest, v.period.Fault)
		return
	}
	by := grouping(v)
	costs := ask[money.Costs](v, history, with(costQuery(v), "by", by, "bucket", cmp.Or(v.Query("bucket"), v.period.Bucket())))
	if !costs.OK() {
		v.fail(costs.Status, costs.Fault)
		return
	}
	dimensions := strings.Split(by, ",")
	lines := [][]string{slices.Concat([]string{"start", "end"}, dimensions, []string{"usd"})}
	for i := range costs.Is.Rows {
		r := &costs.Is.Rows[i]
		line := []string{r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339)}
		for _, dimension := range dimensions {
			line = append(line, dimensionOf(&r.CostGroup, dimension))
		}
		lines = append(lines, append(line, r.USD))
	}
	var text bytes.Buffer
	if err := adminapi.WriteCSV(&text, lines); err != nil {
		v.fail(http.StatusInternalServerError, "cannot write the CSV file")
		return
	}
	v.download("cost", text.Bytes())
}

// focusCSV serves the costs of the explorer as CSV with the columns of FOCUS 1.2.
func (c *Console) focusCSV(v *visit) {
	if v.enter(v.pageNamed("cost")); v.period.Fault != "" {
		v.fail(http.StatusBadRequest, v.period.Fault)
		return
	}
	write := ask[adminapi.Writer](v, exportRow, costQuery(v))
	if !write.OK() {
		v.fail(write.Status, write.Fault)
		return
	}
	var text bytes.Buffer
	if err := write.Is(&text); err != nil {
		v.fail(adminapi.StatusOf(err))
		return
	}
	v.download("focus", text.Bytes())
}

// download sends a CSV file as an attachment.
func (v *visit) download(name string, text []byte) {
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`-`+v.org+`.csv"`)
	_, _ = v.w.Write(text) // the client disconnected
}
