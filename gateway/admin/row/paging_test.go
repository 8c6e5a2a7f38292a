package row_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// A long list is answered in parts, each entry once.
func TestPage(t *testing.T) {
	t.Parallel()
	list := make([]int, 10_002)
	for i := range list {
		list[i] = i
	}
	seen, parts := make(map[int]int), 0
	p := row.Paging{Limit: 1000}
	for ; parts == 0 || p.Cursor != ""; parts++ {
		part, next, err := row.Page(list, &p, func(n *int) string { return strconv.Itoa(*n) })
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range part {
			seen[n]++
		}
		p.Cursor = next
	}
	if parts != 11 || len(seen) != len(list) {
		t.Errorf("%d entries in %d parts, want %d in 11", len(seen), parts, len(list))
	}
	if _, _, err := row.Page(list, &row.Paging{Cursor: "x", Limit: 1}, func(n *int) string { return strconv.Itoa(*n) }); !faulty(err) {
		t.Errorf("a cursor that leads nowhere: %v, want its fault", err)
	}
}

func faulty(err error) bool {
	_, ok := errors.AsType[row.FaultsError](err)
	return ok
}
