// Package connlimit bounds how many connections a listener holds, in all and from
// one address, so that a client that hoards connections uses up neither file descriptors
// nor everybody else's places.
//
// Some connections over a bound are heard all the same, see Excess: a stop or a delete
// must not wait for places that others hoard. Any other is sent one answer, if there is
// one, and closed; of a flood most are closed without it, since it would cost the memory
// that the bound saves. IPv6 addresses count by their /64 network, since one host
// commonly has a whole one.
//
//	l = connlimit.NewListener(l, connlimit.Config{Total: 10000, PerAddress: 500})
package connlimit
