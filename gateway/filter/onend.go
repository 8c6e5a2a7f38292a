package filter

import (
	"errors"
	"io"
	"sync"
)

// OnEnd arranges for end to be called once, when a.Stream has been read to its end or closed. a.Stream must not be nil.
func (a *Response) OnEnd(end func()) { a.Stream = &endNotifier{ReadCloser: a.Stream, end: end} }

// endNotifier is a response body that calls end when it ends.
type endNotifier struct {
	io.ReadCloser
	end  func()
	once sync.Once
}

// Read implements io.Reader.
func (s *endNotifier) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		s.once.Do(s.end)
	}
	return n, err
}

// Close implements io.Closer.
func (s *endNotifier) Close() error {
	err := s.ReadCloser.Close() // may read the rest of the body
	s.once.Do(s.end)
	return err
}
