// Package listen provides the listeners of the gateway and serves HTTP on them. It limits connections, reads the PROXY protocol of load
// balancers, terminates TLS, checks request heads, and shuts down gracefully.
//
// The number of connections is limited in total and per address, see [NewBounded]. A /64 network counts as one IPv6 address. A few
// connections above a limit are accepted, so that callers can stop and delete resources while other callers hold all permitted connections;
// see [OverBound]. Further connections get a short response and are closed. To save memory, most of them are closed without a response if
// there are many at the same time.
//
// The PROXY protocol and X-Forwarded-For are accepted only from configured load balancers. The PROXY protocol is specified at
// https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt.
package listen
