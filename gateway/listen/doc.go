// Package listen accepts connections and serves HTTP: it bounds connections, reads the PROXY protocol of load balancers, ends TLS, judges
// the heads of requests, and serves until the end.
//
// Connections are bounded in all and from one address, IPv6 addresses by their /64 network ([NewBounded]). Some connections above a bound are
// served nevertheless, see [OverBound], so that a stop or a delete does not wait for connections that others hold. Another one is sent one
// answer and closed; in a flood most are closed without an answer, which would cost the memory that the bound saves.
//
// The address in a PROXY header or in X-Forwarded-For is believed only of the configured balancers. The protocol is described at
// https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt.
package listen
