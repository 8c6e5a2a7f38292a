package upstream

import (
	"context"
	"net"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// ByStandard has all requests sent by http.Transport, as to a platform that speaks HTTP/2
// only.
func (c *Client) ByStandard() {
	c.http1 = &http1.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, http1.ErrHTTP2 },
		Fallback:    standardTransport{c},
	}
}
