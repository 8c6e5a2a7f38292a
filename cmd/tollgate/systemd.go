package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// sockets are the listeners that a service manager opened for this process; nil
// for those it did not.
type sockets struct{ data, admin, envoy net.Listener }

// inheritSockets takes over the sockets that systemd passed (sd_listen_fds(3)). They
// are named data, admin and envoy, and have the address that the configuration
// says, by which it was judged.
func inheritSockets(c *settings.Config) (s sockets, err error) {
	passed, err := activation.ListenersWithNames()
	if err != nil {
		return s, fmt.Errorf("socket activation: %w", err)
	}
	places := map[string]struct {
		listener *net.Listener
		setting  string
		addr     string
	}{
		"data":  {&s.data, "listen", c.Listen},
		"admin": {&s.admin, "admin.listen", c.Admin.Listen},
		"envoy": {&s.envoy, "envoy.listen", c.Envoy.Listen},
	}
	var errs []error
	for name, listeners := range passed {
		place, known := places[name]
		switch got := listeners[0].Addr().String(); {
		case !known:
			errs = append(errs, fmt.Errorf("socket activation: %q is not the name of a listener: set FileDescriptorName to data, admin or envoy", name))
		case len(listeners) > 1:
			errs = append(errs, fmt.Errorf("socket activation: %d sockets are named %q, want one", len(listeners), name))
		case !sameAddress(got, place.addr):
			errs = append(errs, fmt.Errorf("socket activation: the socket %q listens on %s, the configuration says %s: %q", name, got, place.setting, place.addr))
		default:
			*place.listener = listeners[0]
		}
	}
	return s, errors.Join(errs...)
}

// sameAddress reports whether a socket's address is the configured one. All
// addresses of IPv4 and of IPv6 are the same: a listener on one is on both.
func sameAddress(socket, configured string) bool {
	want, err := net.ResolveTCPAddr("tcp", configured)
	if err != nil {
		return false
	}
	got, err := netip.ParseAddrPort(socket)
	if err != nil || int(got.Port()) != want.Port {
		return false
	}
	wantIP, _ := netip.AddrFromSlice(want.IP) // all addresses if there is none
	all := !wantIP.IsValid() || wantIP.IsUnspecified()
	return got.Addr().Unmap() == wantIP.Unmap() || all && got.Addr().IsUnspecified()
}

// notifyManager tells the service manager, if there is one, the state of the process
// (sd_notify(3)).
func notifyManager(logger *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		logger.Warn("the service manager was not notified", "error", err.Error())
	}
}

// reloading is the notification that a reload begins, with the time at which it
// does, as Type=notify-reload needs it.
func reloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return daemon.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000)
}
