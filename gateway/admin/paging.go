package admin

import (
	"encoding/base64"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// paging are the parameters of a list that is answered in parts.
type paging struct {
	Cursor string `query:"cursor" max:"1000" doc:"where the list goes on: next of the list before"`
	Limit  int    `query:"limit" min:"1" max:"1000" default:"100" doc:"how many at most"`
}

// pageOf returns a part of a list, and the cursor of the next part, "" behind the last. name returns a name that no other entry has. An
// entry that came in front since the part before moves nothing; one at the cursor that has gone since ends the list with a fault.
func pageOf[T any](list []T, p *paging, name func(*T) string) (part []T, next string, err error) {
	if p.Cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		at := slices.IndexFunc(list, func(x T) bool { return name(&x) == string(last) })
		if err != nil || at < 0 {
			return nil, "", row.Bad("cursor", "the list has changed there: begin anew without it")
		}
		list = list[at+1:]
	}
	part = append([]T{}, list[:min(len(list), p.Limit)]...)
	if len(part) < len(list) {
		next = base64.RawURLEncoding.EncodeToString([]byte(name(&part[len(part)-1])))
	}
	return part, next, nil
}
