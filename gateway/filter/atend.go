package filter

import (
	"errors"
	"io"
	"sync"
)

// AtEnd has end run once when the answer's stream has been read, or after it was closed.
func (a *Answer) AtEnd(end func()) { a.Stream = &settling{ReadCloser: a.Stream, end: end} }

// settling is the body of an answer at whose end something is settled.
type settling struct {
	io.ReadCloser
	end  func()
	once sync.Once
}

// Read implements io.Reader.
func (s *settling) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		s.once.Do(s.end)
	}
	return n, err
}

// Close implements io.Closer.
func (s *settling) Close() error {
	err := s.ReadCloser.Close() // may read the rest of the answer
	s.once.Do(s.end)
	return err
}
