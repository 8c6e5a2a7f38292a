package platform

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// maxPage is the largest page, and the size of a page for a request without limit unless
// Options.PageSize is set.
const maxPage = 1000

// pageParameters are the query parameters of a paged list.
func pageParameters(others ...string) []string { return append(others, "cursor", "limit") }

// page is the part of a list that one request asks for.
type page struct {
	size int
	// before is the place in the list that the page begins behind, counted from the oldest
	// record; 0 is the first page.
	before uint64
	// scope names the request that a cursor is valid for: its path and its other parameters.
	scope string
	// whole says that the emulator does not page: lists are whole, and say nothing of pages.
	whole bool
}

// page reads the page that a request asks for, of most records at the most. scope is the
// text of its other parameters.
func (x *exchange) page(p *params, most int, scope string) page {
	pg := page{size: most, scope: x.r.URL.Path + "?" + scope}
	switch size := x.s.opts.PageSize; {
	case size < 0:
		pg.whole = true
		return pg
	case size > 0:
		pg.size = min(size, most)
	}
	pg.size = p.integer("limit", 1, most, pg.size)
	if p.has("cursor") {
		var known bool
		if pg.before, known = pg.position(p.q.Get("cursor")); !known {
			p.add("query.cursor", "is not a cursor of this list")
		}
	}
	return pg
}

// cursor encodes the place of the last record of a page.
func (pg page) cursor(place uint64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "before=%d %s", place, pg.scope))
}

// position decodes a cursor. A cursor of another list is not known.
func (pg page) position(cursor string) (place uint64, known bool) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	number, scope, _ := strings.Cut(strings.TrimPrefix(string(text), "before="), " ")
	place, err2 := strconv.ParseUint(number, 10, 64)
	return place, err == nil && err2 == nil && place > 0 && scope == pg.scope
}

// paged is the page of a list, which is the member name. list is in the order in which the
// records were made, and is answered newest first; place is the position of a record in that
// order. shown selects the records of the page, after it is cut; nil shows all.
func paged[T any](pg page, name string, list []T, place func(T) uint64, shown func(T) bool, one func(T) object) object {
	end := len(list)
	if pg.before > 0 {
		for end > 0 && place(list[end-1]) >= pg.before {
			end--
		}
	}
	begin := max(0, end-pg.size)
	if pg.whole {
		begin = 0
	}
	cut := make([]T, 0, end-begin)
	for i := end - 1; i >= begin; i-- {
		if shown == nil || shown(list[i]) {
			cut = append(cut, list[i])
		}
	}
	o := object{name, objects(cut, one)}
	switch {
	case pg.whole:
		return o
	case begin == 0:
		return append(o, "pagination", object{"nextCursor", nil, "hasNextPage", false})
	}
	return append(o, "pagination", object{"nextCursor", pg.cursor(place(list[begin])), "hasNextPage", true})
}
