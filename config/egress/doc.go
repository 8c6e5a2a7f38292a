// Package egress connects the gateway to external servers. It uses the proxies of the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), and
// a guard checks addresses before they are dialled. The client of the platform, in package upstream, dials with [Tunnel] and without a
// guard.
//
// A [URL] is a setting that names an external server. It cannot be dialled until [URL.AllowAll] or [URL.Restrict] has set the permitted
// addresses.
//
// A proxy resolves host names itself, so it must block the addresses that the guard would block. With a proxy, the guard checks only IP
// addresses written in the URL.
package egress
