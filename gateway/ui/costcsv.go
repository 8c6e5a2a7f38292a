package ui

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// costCSV serves the costs of the explorer by bucket and group as CSV.
func (v *visit) costCSV() error {
	if err := v.enter(v.pageNamed("cost")); err != nil {
		return err
	}
	by := grouping(v)
	costs, err := reply[money.Costs](v, history, with(costQuery(v), "by", by, "bucket", cmp.Or(v.Query("bucket"), v.period.Bucket())), nil)
	if err != nil {
		return err
	}
	return v.download("cost", func(w io.Writer) error { return adminapi.WriteCSV(w, costLines(costs.Rows, by)) })
}

// costLines returns a header and a line for each cost. Costs grouped by resource have the same additional columns as in the command line.
func costLines(rows []money.Cost, by string) [][]string {
	dimensions := strings.Split(by, ",")
	if i := slices.Index(dimensions, "resource"); i >= 0 {
		dimensions = slices.Insert(dimensions, i+1, "kind", "name", "gpu", "dc")
	}
	lines := [][]string{slices.Concat([]string{"start", "end"}, dimensions, []string{"usd"})}
	for i := range rows {
		r := &rows[i]
		line := []string{r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339)}
		for _, dimension := range dimensions {
			line = append(line, dimensionOf(&r.CostGroup, dimension))
		}
		lines = append(lines, append(line, r.USD))
	}
	return lines
}

// focusCSV serves the costs of the explorer as CSV with the columns of FOCUS 1.2.
func (v *visit) focusCSV() error {
	if err := v.enter(v.pageNamed("cost")); err != nil {
		return err
	}
	write, err := reply[adminapi.Writer](v, exportRow, costQuery(v), nil)
	if err != nil {
		return err
	}
	return v.download("focus", write)
}

// download sends a CSV file as an attachment.
func (v *visit) download(name string, write adminapi.Writer) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`-`+v.org+`.csv"`)
	_, _ = v.w.Write(text.Bytes()) // the client disconnected
	return nil
}
