// Package egress provides the HTTP clients that connect the gateway to external servers. The clients use the proxies configured in the
// environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY). A [Guard] checks each address before it is dialled. Package upstream, the client of the
// platform, uses [Tunnel] without a guard.
//
// A [URL] is a setting that names an external server. No address of the server can be dialled until [URL.AllowAll] or [URL.Restrict] has
// set the permitted addresses.
//
// A proxy resolves host names itself, so it must block the addresses that the guard would block. With a proxy, the guard checks only IP
// addresses written in the URL.
package egress
