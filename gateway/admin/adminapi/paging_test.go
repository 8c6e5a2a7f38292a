package adminapi_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// A long list is answered in parts, each entry once.
func TestPage(t *testing.T) {
	t.Parallel()
	list := make([]int, 10_002)
	for i := range list {
		list[i] = i
	}
	seen, parts := make(map[int]int), 0
	p := adminapi.Paging{Limit: 1000}
	for ; parts == 0 || p.Cursor != ""; parts++ {
		part, next, err := adminapi.Page(list, &p, func(n *int) string { return strconv.Itoa(*n) })
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
	if _, _, err := adminapi.Page(list, &adminapi.Paging{Cursor: "x", Limit: 1}, func(n *int) string { return strconv.Itoa(*n) }); !faulty(err) {
		t.Errorf("a cursor that leads nowhere: %v, want its fault", err)
	}
}

func faulty(err error) bool {
	_, ok := errors.AsType[adminapi.FaultsError](err)
	return ok
}
