package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// AdminURL returns the address, as scheme and host, at which a gateway on this host
// that was started with the file at path answers probes. It reads nothing else of
// the file, which may since have got faults that the running gateway refused.
func AdminURL(path string) (string, error) {
	data, err := files.Read(path, strictyaml.MaxSize)
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	var file struct {
		Admin struct {
			Listen string
			TLS    any
		}
	}
	file.Admin.Listen = settings.Default().Admin.Listen
	if err := yaml.Unmarshal(data, &file); err != nil {
		return "", fmt.Errorf("read configuration: %s: %w", path, err)
	}
	host, port, err := net.SplitHostPort(file.Admin.Listen)
	if err != nil {
		return "", fmt.Errorf("%s: admin.listen: %w", path, err)
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(own(host), port)}
	if file.Admin.TLS != nil {
		u.Scheme = "https"
	}
	return u.String(), nil
}

// own returns the host to dial for a listener's host: loopback for a listener on
// all addresses.
func own(host string) string {
	if host == "" {
		return "127.0.0.1"
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil || !addr.IsUnspecified():
		return host
	case addr.Is4():
		return "127.0.0.1"
	default:
		return "::1"
	}
}
