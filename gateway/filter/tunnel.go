package filter

import (
	"context"
	"crypto/sha1" //nolint:gosec // required by RFC 6455, section 4.2.2
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// keySize is the length of a decoded Sec-WebSocket-Key (RFC 6455, section 4.1).
const keySize = 16

// wantsWebSocket reports whether a request asks for a WebSocket. Other protocols are ignored, and so is any upgrade in HTTP/1.0 (RFC 9110,
// section 7.8).
func wantsWebSocket(in *Inbound) bool {
	return (in.Major != 1 || in.Minor != 0) && hasToken(in.Header["Upgrade"], "websocket")
}

// checkUpgrade refuses WebSockets to anything other than a load-balanced endpoint, and handshakes that do not comply with RFC 6455, section
// 4.1.
func checkUpgrade(ex *Exchange) error {
	in := &ex.In
	if !wantsWebSocket(in) {
		return nil
	}
	if !ex.Opaque() {
		return problem.BadRequest.New("WebSockets are not supported by this operation").With("Connection", "close")
	}
	only := func(name string) string {
		if v := in.Header[name]; len(v) == 1 {
			return v[0]
		}
		return ""
	}
	key, err := base64.StdEncoding.Strict().DecodeString(only("Sec-Websocket-Key"))
	fits := in.Method == http.MethodGet && in.Major == 1 && in.Length == 0 &&
		strings.EqualFold(only("Upgrade"), "websocket") && hasToken(in.Header["Connection"], "upgrade") &&
		only("Sec-Websocket-Version") == "13" && err == nil && len(key) == keySize
	if !fits {
		return problem.BadRequest.New("the upgrade request is not a valid WebSocket handshake (RFC 6455)").With("Connection", "close")
	}
	return nil
}

// hasToken reports whether a list header contains a token.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}

// Response closes the connection after a refused WebSocket, because a proxy in front of the gateway may treat the bytes that follow as
// WebSocket data.
func (CheckHeaders) Response(_ context.Context, ex *Exchange) error {
	if ex.Response.Tunnel == nil && wantsWebSocket(&ex.In) {
		ex.Response.Header.Set("Connection", "close")
	}
	return nil
}

// upgrade sets the headers of a WebSocket upgrade.
func upgrade(h http.Header) {
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
}

// openTunnel turns a 101 response into a WebSocket that ends with ctx. It returns an error if the response is not a valid WebSocket
// handshake.
func openTunnel(ctx context.Context, ex *Exchange, body io.ReadCloser) error {
	a := ex.Response
	conn, both := body.(io.ReadWriteCloser)
	h := a.Header
	sum := sha1.Sum([]byte(ex.In.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // required by RFC 6455, section 4.2.2
	fits := both && ex.Out.Tunnel && len(h["Upgrade"]) == 1 && strings.EqualFold(h.Get("Upgrade"), "websocket") &&
		hasToken(h["Connection"], "upgrade") &&
		slices.Equal(h["Sec-Websocket-Accept"], []string{base64.StdEncoding.EncodeToString(sum[:])})
	if !fits {
		_ = body.Close()
		ex.MarkInterrupted()
		return fmt.Errorf("%w: invalid WebSocket handshake", upstream.ErrUnreachable)
	}
	a.Tunnel = &tunnel{conn, ctx}
	return nil
}

// tunnel is a WebSocket. Its errors wrap ErrStreamEnded if the gateway ended it.
type tunnel struct {
	io.ReadWriteCloser
	ctx context.Context //nolint:containedctx // of the stream, which ends with it
}

// Read implements io.Reader.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	return n, t.why(err)
}

// Write implements io.Writer.
func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	return n, t.why(err)
}

func (t *tunnel) why(err error) error {
	if errors.Is(err, upstream.ErrTimeout) {
		return errIdle
	}
	return streamErr(t.ctx, err)
}
