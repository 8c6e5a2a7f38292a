package envoy

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/world"
)

// A group has certificates for several host names: callers are shown that of the name
// they ask for.
func TestCertificatesByName(t *testing.T) {
	t.Parallel()
	const other = "other.fleet.test"
	ca, dir, further := newAuthority(t), t.TempDir(), t.TempDir()
	ca.issue(t, dir)
	ca.issueFor(t, further, other)
	callers := fmt.Sprint("127.0.0.1:", port(t))
	text := strings.Replace(encrypted(dir, callers), "http3: true, ", fmt.Sprintf("http3: true, certificates: [{certificate: {file: %q}, key: {file: %q}}], ",
		filepath.Join(further, "tls.crt"), filepath.Join(further, "private", "tls.key")), 1)
	f := newFleet(t, text)
	m := f.run(t, nil)
	start(t, secure(t, edge, dir, m.door))
	shown := func(name string) string {
		config := ca.client()
		config.ServerName = name
		conn, err := tls.Dial("tcp", callers, config)
		if err != nil {
			return ""
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].DNSNames[0]
	}
	for _, name := range []string{callersName, other} {
		world.Until(t, name+" is shown its certificate", func() bool { return shown(name) == name })
	}
}
