// Package listen accepts connections and serves HTTP. It limits connections, reads the PROXY protocol of load balancers, terminates TLS,
// checks request heads, and shuts down gracefully.
//
// Connections are limited in total and per address, see [NewBounded]. For IPv6, the /64 network counts as one address. A few connections
// above a limit are accepted, see [OverBound], so that callers can stop and delete resources while other callers hold all connections.
// Further connections receive a short answer and are closed. Under a flood of connections, most are closed without an answer to save
// memory.
//
// The caller's address in a PROXY header or in X-Forwarded-For is accepted only from configured balancers. The PROXY protocol is specified
// at https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt.
package listen
