package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Files are the certificates of a server with TLS, as PEM files.
type Files struct {
	// CA is the certificate of an authority made for the test, which signed all
	// others and itself.
	CA string
	// ClientCert and ClientKey identify a client, as the server demands.
	ClientCert, ClientKey string
}

// ServerName is the only name in the certificate of a server with TLS; its address
// is in it, too.
const ServerName = "redis.test"

// RunTLS starts a server that speaks TLS only, and only with clients that have a
// certificate of the same authority. The arguments are those of Run.
func RunTLS(t testing.TB, args ...string) (*Server, Files) {
	t.Helper()
	dir := t.TempDir()
	a := newAuthority(t, dir)
	cert, key := a.issue(t, dir, "server", &x509.Certificate{
		DNSNames: []string{ServerName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	f := Files{CA: a.file}
	f.ClientCert, f.ClientKey = a.issue(t, dir, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	s := launch(t, readyServer, func(port int) []string {
		listen := arguments(dir, "--port", "0", "--tls-port", strconv.Itoa(port),
			"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.file)
		return append(listen, args...)
	})
	return s, f
}

// authority signs certificates for the length of a test.
type authority struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// validity is longer than any test takes, with room for clocks that differ.
const validity = time.Hour

func newAuthority(t testing.TB, dir string) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(dir, "ca.pem"), key: newKey(t)}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := a.sign(t, template, template, &a.key.PublicKey)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatalf("redistest: authority: %v", err)
	}
	write(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate and its key.
func (a *authority) issue(t testing.TB, dir, name string, template *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	template.Subject = pkix.Name{CommonName: name}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	key := newKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("redistest: key of %s: %v", name, err)
	}
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	write(t, certFile, "CERTIFICATE", a.sign(t, template, a.cert, &key.PublicKey))
	write(t, keyFile, "PRIVATE KEY", der)
	return certFile, keyFile
}

func (a *authority) sign(t testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey) []byte {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatalf("redistest: serial number: %v", err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-validity), time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		t.Fatalf("redistest: certificate of %s: %v", template.Subject.CommonName, err)
	}
	return der
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("redistest: key: %v", err)
	}
	return key
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
