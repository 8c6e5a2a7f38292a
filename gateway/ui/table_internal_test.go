package ui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A table shows the order of its rows, also if the address has none. Endpoints sort numbers in descending order.
func TestShownOrder(t *testing.T) {
	t.Parallel()
	columns := []column[int]{{Key: "id", Param: "id", Cell: func(*int) cell { return cell{} }}, {Key: "cost", Param: "cost", Number: true, Cell: func(*int) cell { return cell{} }}}
	for query, want := range map[string][]string{"": {"", "descending"}, "sort=id": {"ascending", ""}} {
		v := hostileVisit("resources")
		v.r.URL.RawQuery = query
		heads := newTable(v, nil, tableSpec[int]{Name: "x", Columns: columns, Order: "cost"}).Columns
		if diff := cmp.Diff(want, []string{heads[0].Order, heads[1].Order}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}
