// Package balancer finds the address of a caller behind load balancers: by the PROXY
// protocol, versions 1 and 2, with which a balancer begins a connection, and by
// X-Forwarded-For, to which it appends.
//
// Both are believed only of listed addresses. Any other sender of a PROXY header has
// sent a malformed request, and the X-Forwarded-For of others is not read.
//
// The protocol is described at https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt.
package balancer
