package adminapi

import (
	"encoding/base64"
	"slices"
)

// Paging is the parameters of a list that is answered in parts. Structs of parameters embed it.
type Paging struct {
	Cursor string `query:"cursor" max:"1000" doc:"where the list goes on: next of the list before"`
	Limit  int    `query:"limit" min:"1" max:"1000" default:"100" doc:"how many at most"`
}

// Page returns the part of a list that p names, and the cursor of the next part, "" after the last part. name returns a name that no other
// entry has. Entries that were added in front since the previous part move nothing. A cursor whose entry was removed meanwhile is a
// [FaultsError].
func Page[T any](list []T, p *Paging, name func(*T) string) (part []T, next string, err error) {
	if p.Cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		at := slices.IndexFunc(list, func(x T) bool { return name(&x) == string(last) })
		if err != nil || at < 0 {
			return nil, "", BadParam("cursor", "the list has changed at this cursor: start again without a cursor")
		}
		list = list[at+1:]
	}
	part = append([]T{}, list[:min(len(list), p.Limit)]...)
	if len(part) < len(list) {
		next = base64.RawURLEncoding.EncodeToString([]byte(name(&part[len(part)-1])))
	}
	return part, next, nil
}
