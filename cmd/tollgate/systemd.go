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

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// inheritSockets adds the sockets passed by systemd (sd_listen_fds(3)) to deps. They are named data, admin and envoy. Each socket must have
// the address in the configuration, because the check of the configuration depends on the addresses.
func inheritSockets(c *settings.Config, deps *gateway.Deps) error {
	passed, err := activation.ListenersWithNames()
	if err != nil {
		return fmt.Errorf("socket activation: %w", err)
	}
	places := map[string]struct {
		listener *net.Listener
		setting  string
		addr     string
	}{
		"data":  {&deps.Data, "listen", c.Listen},
		"admin": {&deps.Admin, "admin.listen", c.Admin.Listen},
		"envoy": {&deps.Envoy, "envoy.listen", c.Envoy.Listen},
	}
	var errs []error
	for name, listeners := range passed {
		place, known := places[name]
		switch got := listeners[0].Addr().String(); {
		case !known:
			errs = append(errs, fmt.Errorf("socket activation: unknown listener %q: set FileDescriptorName to data, admin or envoy",
				name))
		case len(listeners) > 1:
			errs = append(errs, fmt.Errorf("socket activation: %d sockets are named %q, expected one", len(listeners), name))
		case !sameAddress(got, place.addr):
			errs = append(errs, fmt.Errorf("socket activation: socket %q listens on %s, but %s is configured as %q",
				name, got, place.setting, place.addr))
		default:
			*place.listener = listeners[0]
		}
	}
	return errors.Join(errs...)
}

// sameAddress reports whether a socket has the configured address. The wildcard addresses of IPv4 and IPv6 count as equal, because a
// listener on either of them accepts connections of both protocols.
func sameAddress(socket, configured string) bool {
	want, err := net.ResolveTCPAddr("tcp", configured)
	if err != nil {
		return false
	}
	got, err := netip.ParseAddrPort(socket)
	if err != nil || int(got.Port()) != want.Port {
		return false
	}
	wantIP, _ := netip.AddrFromSlice(want.IP) // the wildcard address if empty
	all := !wantIP.IsValid() || wantIP.IsUnspecified()
	return got.Addr().Unmap() == wantIP.Unmap() || all && got.Addr().IsUnspecified()
}

// notifyManager reports the state of the process to the service manager, if there is one (sd_notify(3)).
func notifyManager(logger *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		logger.Warn("service manager not notified", "error", err.Error())
	}
}

// reloading returns the notification that a reload begins, with a timestamp, as Type=notify-reload requires.
func reloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return daemon.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000)
}
