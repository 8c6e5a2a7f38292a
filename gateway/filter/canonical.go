package filter

import (
	"io"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// largeBody is a size in bytes. Smaller outbound bodies are encoded before they are sent, other bodies while they are sent.
const largeBody = 256 << 10

// counter counts the bytes written to it.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// canonical is an outbound body that encodes a document in canonical form while it is read. The document and its memory are released when
// encoding ends or the body is closed.
type canonical struct {
	*io.PipeReader
	pipe  *io.PipeWriter
	doc   any
	begun bool
	sent  func()
}

// newCanonical returns a body that encodes doc, and the length of the encoding. sent is called when the body is no longer needed.
func newCanonical(doc any, sent func()) (io.ReadCloser, int64, error) {
	var n counter
	if err := strictjson.Write(&n, doc); err != nil {
		return nil, 0, err
	}
	r, w := io.Pipe()
	return &canonical{PipeReader: r, pipe: w, doc: doc, sent: sent}, int64(n), nil
}

// Read implements io.Reader.
func (c *canonical) Read(p []byte) (int, error) {
	if !c.begun {
		c.begun = true
		doc := c.doc
		c.doc = nil
		go func() {
			_ = c.pipe.CloseWithError(strictjson.Write(c.pipe, doc))
			c.sent()
		}()
	}
	return c.PipeReader.Read(p)
}
