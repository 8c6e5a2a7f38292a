package ui

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// livePath streams new decisions to the script of the Requests page.
const livePath = "/ui/requests/live"

// decisionStream is the endpoint that streams decisions.
const decisionStream = "GET /admin/decisions/stream"

// live sends the decisions that match the page's filter as server-sent events. The stream ends when the session ends or the role is
// revoked.
func (v *visit) live() error {
	asked := v.query(decisionStream)
	org := cmp.Or(asked.Get("org"), v.org)
	v.scope.StillAllowed = func(ctx context.Context) bool {
		again := &visit{Console: v.Console, r: v.r.WithContext(ctx)}
		if again.identify() != nil {
			return false
		}
		now, err := v.rows.Endpoint(decisionStream).Admit(again.scope, org)
		return err == nil && now == org
	}
	stream, err := reply[adminapi.Writer](v, decisionStream, asked, nil)
	if err == nil {
		admin.WriteText(v.w, v.rows.Endpoint(decisionStream).ContentType, stream)
	}
	return err
}

// liveAddress returns the address of the event stream, or "" if the page shows older requests.
func (v *visit) liveAddress() string {
	if v.Query("before") != "" || v.ended() {
		return ""
	}
	q := v.query(decisionStream)
	if q.Get("org") == "" && v.org != "" {
		q.Set("org", v.org)
	}
	return livePath + "?" + q.Encode()
}
