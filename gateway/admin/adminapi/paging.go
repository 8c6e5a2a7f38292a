package adminapi

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
)

// Paging contains the parameters of a paginated list. Parameter structs embed it.
type Paging struct {
	Cursor string `query:"cursor" max:"1000" doc:"cursor: the value of the field next in the previous page"`
	Limit  int    `query:"limit" min:"1" max:"1000" default:"100" doc:"maximum number of entries"`
}

// Page returns the page of list that p selects, and the cursor of the next page, or "" after the last page. name must return a unique name
// for each entry. Entries inserted before the page since the previous call do not shift the page. Page returns a [FaultsError] if the entry
// at the cursor has been removed.
func Page[T any](list []T, p *Paging, name func(*T) string) (part []T, next string, err error) {
	if p.Cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		at := slices.IndexFunc(list, func(x T) bool { return name(&x) == string(last) })
		if err != nil || at < 0 {
			return nil, "", BadParam("cursor", "the entry at this cursor was removed: start again without a cursor")
		}
		list = list[at+1:]
	}
	part = append([]T{}, list[:min(len(list), p.Limit)]...)
	if len(part) < len(list) {
		next = base64.RawURLEncoding.EncodeToString([]byte(name(&part[len(part)-1])))
	}
	return part, next, nil
}

// SortedPage returns the page of list that p selects in the order of the ranks, and the cursor of the next page, or "" after the last page.
// rank must return a unique text for each entry. A page begins after the rank of the last entry of the previous page. Therefore all entries
// whose ranks have not changed in the meantime are on exactly one page, even if other entries were changed, added or removed.
func SortedPage[T any](list []T, p *Paging, rank func(*T) string) (part []T, next string, err error) {
	after, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return nil, "", BadParam("cursor", "is malformed; start again without a cursor")
	}
	entries, ranks := make(map[string]T, len(list)), make([]string, 0, len(list))
	for i := range list {
		if r := rank(&list[i]); p.Cursor == "" || r > string(after) {
			entries[r], ranks = list[i], append(ranks, r)
		}
	}
	slices.Sort(ranks)
	part = make([]T, min(len(ranks), p.Limit))
	for i := range part {
		part[i] = entries[ranks[i]]
	}
	if len(part) < len(ranks) {
		next = base64.RawURLEncoding.EncodeToString([]byte(ranks[len(part)-1]))
	}
	return part, next, nil
}

// Descending returns a text of fixed length for use in ranks. A higher n results in a text that is sorted before.
func Descending(n int64) string { return fmt.Sprintf("%016x", uint64(math.MaxInt64)-uint64(n)) }
