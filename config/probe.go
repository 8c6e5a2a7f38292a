package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// AdminURL returns the URL (scheme and host) of the admin listener of a gateway that runs on this host with the configuration file at path.
// Health probes use it. AdminURL ignores faults in other settings, because a gateway keeps running when it has rejected a new version of
// the file.
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

// LoadEnvoys reads the configuration file at path to generate the bootstrap configuration of Envoys. It reads no other file, and resolves
// no secret except envoy.xds.token, so it works on machines that lack the gateway's other files and secrets. It decodes the file strictly,
// but checks the values only with validate.
func LoadEnvoys(path string, validate func(*settings.Config) error) (*Loaded, error) {
	data, err := files.Read(path, strictyaml.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	l := &Loaded{Config: settings.Default(), allowances: make(map[string]*allowance)}
	if l.positions, err = strictyaml.DecodePartial(path, data, &l.Config); err != nil {
		form, _ := errors.AsType[strictyaml.Errors](err)
		hint(form)
		return nil, err
	}
	l.Config.AllowAllDestinations()
	if err := l.resolveAt("envoy.xds.token", &l.Config.Envoy.XDS.Token); err != nil {
		return nil, err
	}
	return l, l.Locate(errors.Join(errors.Join(validateListeners(&l.Config)...), validate(&l.Config)))
}

// EnvoyServerName returns the first DNS name in the certificate that the gateways present to Envoys (envoy.tls.certificate).
func (l *Loaded) EnvoyServerName() (string, error) {
	const path = "envoy.tls.certificate"
	s := &l.Config.Envoy.TLS.Certificate
	if err := l.resolveAt(path, s); err != nil {
		return "", err
	}
	block, _ := pem.Decode([]byte(s.Reveal()))
	if block == nil {
		return "", l.Locate(fault.Errorf(path, "%s contains no PEM certificate", s.Source()))
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(cert.DNSNames) == 0 {
		return "", l.Locate(fault.Errorf(path, "%s must contain a DNS name, which Envoys need to verify the gateways", s.Source()))
	}
	return cert.DNSNames[0], nil
}

// resolveAt resolves the secret at a path. Its error contains the position of the setting in the file.
func (l *Loaded) resolveAt(path string, s *strictyaml.Secret) error {
	return l.Locate(fault.At(path, s.Resolve(os.LookupEnv, l.secretReader(new(settings.Org)))))
}

// own returns the host with which a client on this machine can reach a listener on host. For the unspecified address, this is a loopback
// address.
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
