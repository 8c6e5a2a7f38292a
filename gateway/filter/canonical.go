package filter

import (
	"io"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// largeBody is the size from which a body is written to the platform from the
// parsed values, instead of being encoded beforehand.
const largeBody = 256 << 10

// counter counts the bytes written to it.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// canonical is the canonical form of a document as a body. It is written as it is
// read; once it was, or is closed, the document is let go and its memory given back.
type canonical struct {
	*io.PipeReader
	pipe  *io.PipeWriter
	doc   any
	begun bool
	sent  func()
}

// newCanonical returns the body of a document, and its length. sent is called when
// the body is needed no more.
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
