package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/test/world"
)

// newCertificate is a certificate that ended long ago, and its key, both in PEM.
func newCertificate(t *testing.T) (chain, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	in := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return in("CERTIFICATE", certificate), in("PRIVATE KEY", der)
}

// TestCertificates: a pair that does not fit is a fault with its place, which shows
// nothing of the key. One that has ended is none.
func TestCertificates(t *testing.T) {
	const file = `platform: {base_url: "https://platform.test"}
redis: {embedded: true}
%s
orgs: [{id: acme, credential: {env: ACME_KEY}}]
`
	chain, key := newCertificate(t)
	_, another := newCertificate(t)
	mesh := world.NewAuthority(t, "mesh", time.Unix(1, 0))
	list := func(change func(*x509.RevocationList)) string {
		l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Unix(0, 0), NextUpdate: time.Unix(1, 0)}
		change(l)
		return mesh.List(t, l)
	}
	callers := func(ca, crl string) string {
		return "tls: {certificate: {env: CHAIN}, key: {env: KEY}}\ncertificates: {authorities: [{id: m, ca: {env: " + ca + "}, crl: {env: " + crl + "}, orgs: [acme], role: viewer}]}"
	}
	values := map[string]string{
		"MESH": mesh.PEM(), "REVOKED": list(func(*x509.RevocationList) {}),
		"PART": list(func(l *x509.RevocationList) {
			l.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}
		}), "ACME_KEY": "pk-1", "CHAIN": chain, "KEY": key, "ANOTHER": another, "TEXT": "no PEM at all",
	}
	for _, tc := range []struct{ section, want string }{
		{`tls: {certificate: {env: CHAIN}, key: {env: KEY}}`, ""},
		{`admin: {tls: {certificate: {env: CHAIN}, key: {env: KEY}}}`, ""},
		{`tls: {certificate: {env: CHAIN}}`, "tollgate.yaml:3:1: tls: must set both certificate and key"},
		{`tls: {key: {env: KEY}}`, "tollgate.yaml:3:1: tls: must set both certificate and key"},
		{`tls: {certificate: {env: CHAIN}, key: {env: ANOTHER}}`, "tollgate.yaml:3:34: tls.key: environment variable ANOTHER is not the private key of the certificate"},
		{`tls: {certificate: {env: KEY}, key: {env: CHAIN}}`, "tollgate.yaml:3:7: tls.certificate: environment variable KEY contains no PEM certificate"},
		{`tls: {certificate: {env: CHAIN}, key: {env: TEXT}}`, "tollgate.yaml:3:34: tls.key: environment variable TEXT contains no PEM private key"},
		{`admin: {tls: {certificate: {env: TEXT}, key: {env: KEY}}}`, "tollgate.yaml:3:15: admin.tls.certificate: environment variable TEXT contains no PEM certificate"},
		{`tls: {certificate: {env: NOT_SET}, key: {env: KEY}}`, "tollgate.yaml:3:7: tls.certificate: environment variable NOT_SET is not set"},
		{callers("MESH", "REVOKED"), ""},
		{callers("TEXT", "REVOKED"), "tollgate.yaml:4:38: certificates.authorities[0].ca: contains no PEM block of type CERTIFICATE"},
		{callers("CHAIN", "REVOKED"), "tollgate.yaml:4:38: certificates.authorities[0].ca: contains a certificate that is not a CA certificate"},
		{callers("KEY", "REVOKED"), `tollgate.yaml:4:38: certificates.authorities[0].ca: contains a PEM block of type "PRIVATE KEY", want only CERTIFICATE`},
		{callers("MESH", "MESH"), `tollgate.yaml:4:55: certificates.authorities[0].crl: contains a PEM block of type "CERTIFICATE", want only X509 CRL`},
		{callers("MESH", "PART"), "tollgate.yaml:4:55: certificates.authorities[0].crl: contains a CRL with the critical extension 2.5.29.27, want only complete CRLs"},
	} {
		l, err := config.Parse("tollgate.yaml", fmt.Appendf(nil, file, tc.section), config.Sources{Env: func(name string) (string, bool) {
			v, ok := values[name]
			return v, ok
		}}, nil)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.section, err)
		case tc.want == "":
			data, admin := strings.HasPrefix(tc.section, "tls"), strings.HasPrefix(tc.section, "admin")
			if c := l.Config; (c.TLS.Pair != nil) != data || (c.Admin.TLS.Pair != nil) != admin {
				t.Errorf("%s: got certificates of data %t, admin %t", tc.section, c.TLS.Pair != nil, c.Admin.TLS.Pair != nil)
			}
			const expired = "tollgate.yaml:4:55: certificates.authorities[0].crl: a revocation list expired at 1970-01-01T00:00:01Z"
			warned := strings.Contains(fmt.Sprint(l.Warnings(time.Unix(1, 0))), expired)
			if want := len(l.Config.Certificates.Authorities) > 0; warned != want {
				t.Errorf("%s: warned of an expired list: %t, want %t", tc.section, warned, want)
			}
		case err == nil || err.Error() != tc.want:
			t.Errorf("%s:\ngot  %v\nwant %s", tc.section, err, tc.want)
		}
	}
}
