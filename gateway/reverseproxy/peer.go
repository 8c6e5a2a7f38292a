package reverseproxy

import (
	"net/netip"
	"slices"
	"strings"
)

// peer returns the address a request comes from. Each proxy adds the address that
// connected to it at the end of X-Forwarded-For, so it is the last one there that
// is no proxy of ours; what stands before it is the caller's own word. An entry
// that is no address ends the search at the proxy that added it.
func (h *Handler) peer(connection string, forwarded []string) string {
	if !h.proxy(connection) {
		return connection
	}
	peer := connection
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return peer
		}
		peer = addr.Unmap().String()
		if !h.proxy(peer) {
			return peer
		}
	}
	return peer
}

// proxy reports whether an address is that of a proxy before this door.
func (h *Handler) proxy(address string) bool {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(h.Proxies, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}
