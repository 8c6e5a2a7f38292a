package wire

import "net"

// Scanner gives tests the framer without a connection.
type Scanner struct{ f framer }

// NewScanner returns a Scanner.
func NewScanner() *Scanner { return new(Scanner) }

// Scan is framer.scan; it also reports whether a message ended.
func (s *Scanner) Scan(b []byte) (n int, ended bool, fault *Refusal) {
	n, fault = s.f.scan(b)
	return n, fault == nil && n > 0 && s.f.state == atStart, fault
}

// Wrap returns a judged connection.
func Wrap(c net.Conn) net.Conn { return newConn(c, nil) }

// Parking is how long a read ahead is parked.
const Parking = parkDelay

// HalfClosed is how long a client that has half-closed its connection is answered.
const HalfClosed = halfCloseTimeout
