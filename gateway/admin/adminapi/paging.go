package adminapi

import (
	"encoding/base64"
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
