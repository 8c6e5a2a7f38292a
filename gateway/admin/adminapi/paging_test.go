package adminapi_test

import (
	"errors"
	"strconv"
	"strings"
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

// An entry whose rank stays the same is on one page, even if others move across the cursor or
// disappear, as the last entry of the page before.
func TestSortedPage(t *testing.T) {
	t.Parallel()
	amounts := map[string]int64{"a": 50, "b": 40, "c": 30, "d": -2, "e": -20, "f": 20}
	page := func(cursor string) (got, next string) {
		t.Helper()
		var list []string
		for id := range amounts {
			list = append(list, id)
		}
		part, next, err := adminapi.SortedPage(list, &adminapi.Paging{Limit: 2, Cursor: cursor}, func(id *string) string {
			return adminapi.Descending(amounts[*id]) + *id
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(part, ""), next
	}
	first, next := page("")
	amounts["b"], amounts["f"] = 1, 60
	second, next := page(next)
	delete(amounts, "b")
	third, last := page(next)
	if got := first + " " + second + " " + third; got != "ab cb de" || last != "" {
		t.Errorf("pages %s, then %q, want ab cb de: b fell and f rose past the first page", got, last)
	}
	if _, _, err := adminapi.SortedPage([]string{"a"}, &adminapi.Paging{Cursor: "x", Limit: 1}, func(id *string) string { return *id }); !faulty(err) {
		t.Errorf("a malformed cursor: %v, want its fault", err)
	}
}
