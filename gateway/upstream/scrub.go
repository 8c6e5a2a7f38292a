package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// mask stands for a credential wherever one might be printed.
const mask = "[redacted]"

// minScrubLength is the length below which a credential is not looked for: that is a word
// which answers may have for other reasons, and no key of the platform.
const minScrubLength = 8

// Scrub returns b with every occurrence of the key masked. The length stays, so that
// what frames b stays true.
func (c Credential) Scrub(b []byte) []byte {
	if len(c.secret) < minScrubLength || !bytes.Contains(b, []byte(c.secret)) {
		return b
	}
	return bytes.ReplaceAll(b, []byte(c.secret), c.masked())
}

// ScrubHeader masks the key in the values of a header.
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

// masked is as long as the key.
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

// scrubber is a body without a key. It keeps back bytes that may be the beginning of
// one, until more has come; the rest passes at once.
type scrubber struct {
	io.ReadCloser
	cred Credential
	key  []byte
	held []byte // shorter than the key
	// ready holds the bytes read for a caller who takes less than a key at a time, err what
	// comes behind it.
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

// fill reads into p, which is at least as long as the key.
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

// prefixAtEnd returns where at the end of b a key may have begun, len(b) if it has not.
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
