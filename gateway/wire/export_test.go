package wire

import "net"

// Scanner gives tests the framer without a connection.
type Scanner struct{ f framer }

// NewScanner returns a Scanner with the default bounds.
func NewScanner() *Scanner {
	return &Scanner{framer{maxHead: defaultMaxHead, maxFields: defaultMaxFields}}
}

// Scan is framer.scan; it also reports whether a message ended.
func (s *Scanner) Scan(b []byte) (n int, ended bool, fault *Refusal) {
	n, fault = s.f.scan(b)
	return n, fault == nil && n > 0 && s.f.state == atStart, fault
}

// Wrap returns a judged connection with the default bounds.
func Wrap(c net.Conn) net.Conn {
	return newConn(c, &Config{MaxHead: defaultMaxHead, MaxFields: defaultMaxFields})
}

// Parking is how long a read ahead is parked.
const Parking = parkDelay

// HalfClosed is how long a client that has half-closed its connection is answered.
const HalfClosed = halfCloseTimeout

// MaxHead is the default bound of a head.
const MaxHead = defaultMaxHead
