package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxInline is the maximum length of a body that is read before the request is sent and written before the response is read. It fits into
// the socket buffers of an idle connection regardless of the server.
const maxInline = 16 << 10

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

func inline(req *http.Request) bool {
	return req.ContentLength > 0 && req.ContentLength <= maxInline
}

// read returns a request whose body is in memory. The body can then be sent together with the headers, and nothing is sent if reading the
// body fails.
func read(req *http.Request) (*http.Request, error) {
	b := make([]byte, req.ContentLength)
	_, err := io.ReadFull(req.Body, b)
	if cerr := req.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	out := *req
	out.Body = io.NopCloser(bytes.NewReader(b))
	return &out, nil
}

// source is a request body that records its error, which http.Request.Write hides.
type source struct {
	io.ReadCloser
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
