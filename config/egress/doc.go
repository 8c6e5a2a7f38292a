// Package egress is how the gateway reaches servers outside: through the proxies that its
// environment names (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), and past a guard, which judges
// addresses before they are dialled. The client of the platform is package upstream; it
// dials by Tunnel, without a guard.
//
// A [URL] is a setting that names such a server. It cannot be dialled before [URL.AllowAll] or [URL.Restrict] has said where it may lead.
//
// Behind a proxy, the proxy resolves names, and must refuse the addresses that the guard
// would: the guard judges addresses that stand in the URL.
package egress
