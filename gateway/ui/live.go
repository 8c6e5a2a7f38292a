package ui

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// livePath serves decisions as they are made, to the script of the page of decisions.
const livePath = "/ui/requests/live"

// decisionStream is the row whose events a page follows.
const decisionStream = "GET /admin/decisions/stream"

// live sends the decisions that the filter of a page selects, as server-sent events. It ends with the session and with the role.
func (c *Console) live(v *visit) {
	asked := v.query(decisionStream)
	org := cmp.Or(asked.Get("org"), v.org)
	v.scope.StillAllowed = func(ctx context.Context) bool {
		again := &visit{Console: c, r: v.r.WithContext(ctx)}
		if again.identify() != nil {
			return false
		}
		now, err := v.rows.Endpoint(decisionStream).Admit(again.scope, org)
		return err == nil && now == org
	}
	stream, err := reply[adminapi.Writer](v, decisionStream, asked, nil)
	if err != nil {
		v.fail(adminapi.StatusOf(err))
		return
	}
	admin.WriteText(v.w, v.rows.Endpoint(decisionStream).ContentType, stream)
}

// LiveAddress returns where the page reads requests as they end, "" for a page of older ones.
func (f *frame) LiveAddress() string {
	if f.Query("before") != "" || f.ended() {
		return ""
	}
	q := f.query(decisionStream)
	if q.Get("org") == "" && f.org != "" {
		q.Set("org", f.org)
	}
	return livePath + "?" + q.Encode()
}
