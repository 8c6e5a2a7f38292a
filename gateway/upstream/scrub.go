package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// mask is printed instead of a credential.
const mask = "[redacted]"

// minScrubLength is the minimum length of credentials that are masked in responses. A shorter credential may be an ordinary word, and is
// not a real platform key.
const minScrubLength = 8

// Scrub returns b with each occurrence of the key replaced with a mask of the same length.
func (c Credential) Scrub(b []byte) []byte {
	if len(c.secret) < minScrubLength || !bytes.Contains(b, []byte(c.secret)) {
		return b
	}
	return bytes.ReplaceAll(b, []byte(c.secret), c.masked())
}

// ScrubHeader masks the key in header values.
func (c Credential) ScrubHeader(h http.Header) {
	if len(c.secret) < minScrubLength {
		return
	}
	for _, values := range h {
		for i, v := range values {
			if strings.Contains(v, c.secret) {
				values[i] = strings.ReplaceAll(v, c.secret, string(c.masked()))
			}
		}
	}
}

// overwrite masks the key in place.
func (c Credential) overwrite(b, key []byte) {
	for at := bytes.Index(b, key); at >= 0; at = bytes.Index(b, key) {
		b = b[at+copy(b[at:], c.masked()):]
	}
}

// masked returns a mask of the same length as the key.
func (c Credential) masked() []byte {
	b := bytes.Repeat([]byte("*"), len(c.secret))
	copy(b, mask)
	return b
}

// scrubbed returns a body with every occurrence of the key masked.
func (c Credential) scrubbed(in io.ReadCloser) io.ReadCloser {
	if len(c.secret) < minScrubLength {
		return in
	}
	return &scrubber{ReadCloser: in, cred: c, key: []byte(c.secret)}
}

// scrubber is a body with the key masked. It holds back bytes that may be the beginning of the key until more data arrives. Other bytes
// pass immediately.
type scrubber struct {
	io.ReadCloser
	cred Credential
	key  []byte
	held []byte // shorter than the key
	// ready contains bytes for a caller that reads less than the length of the key at a time. err is returned after them.
	ready []byte
	err   error
}

// Read implements io.Reader.
func (s *scrubber) Read(p []byte) (int, error) {
	if len(s.ready) == 0 && s.err == nil && len(p) >= len(s.key) {
		return s.fill(p)
	}
	if len(s.ready) == 0 && s.err == nil {
		b := make([]byte, 2*len(s.key))
		n, err := s.fill(b)
		s.ready, s.err = b[:n], err
	}
	n := copy(p, s.ready)
	if s.ready = s.ready[n:]; len(s.ready) > 0 {
		return n, nil
	}
	return n, s.err
}

// fill reads into p, which must be at least as long as the key.
func (s *scrubber) fill(p []byte) (int, error) {
	for {
		n := copy(p, s.held)
		s.held = s.held[:0]
		m, err := s.ReadCloser.Read(p[n:])
		n += m
		s.cred.overwrite(p[:n], s.key)
		if err != nil {
			s.err = err
			return n, err
		}
		if open := n - prefixAtEnd(p[:n], s.key); open > 0 {
			n -= open
			s.held = append(s.held, p[n:n+open]...)
		}
		if n > 0 || m == 0 {
			return n, nil
		}
	}
}

// prefixAtEnd returns the start index of a possible beginning of the key at the end of b, or len(b).
func prefixAtEnd(b, key []byte) int {
	at := max(0, len(b)-len(key)+1)
	for {
		i := bytes.IndexByte(b[at:], key[0])
		if i < 0 {
			return len(b)
		}
		if at += i; bytes.HasPrefix(key, b[at:]) {
			return at
		}
		at++
	}
}
