package upstream

import (
	"context"
	"net"

	"github.com/tollgate-dev/tollgate/gateway/upstream/lean"
)

// ByStandard has all requests sent by http.Transport, as to a platform that speaks HTTP/2
// only.
func (c *Client) ByStandard() {
	c.lean = &lean.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, lean.ErrHTTP2 },
		Fallback:    byStandard{c},
	}
}
