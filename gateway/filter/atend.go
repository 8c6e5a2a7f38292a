package filter

import (
	"errors"
	"io"
	"sync"
)

// OnEnd has end run once when the answer's stream has been read, or after it was closed.
func (a *Response) OnEnd(end func()) { a.Stream = &endNotifier{ReadCloser: a.Stream, end: end} }

// endNotifier is the body of an answer at whose end something is settled.
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
	err := s.ReadCloser.Close() // may read the rest of the answer
	s.once.Do(s.end)
	return err
}
