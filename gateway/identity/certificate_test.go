package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// authority signs certificates and revocation lists. All its certificates have its key, which no test here needs to differ.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority returns an authority with a certificate that is valid for a day around now.
func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	a.cert = a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-12 * time.Hour), NotAfter: now.Add(12 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate) *x509.Certificate {
	t.Helper()
	parent := a.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// client returns a client certificate with serial number 2 that is valid for an hour around now, unless change says otherwise.
func (a *authority) client(t *testing.T, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), URIs: []*url.URL{{Scheme: "spiffe", Host: "corp.test", Path: "/sa/train"}},
		NotBefore: now.Add(-30 * time.Minute), NotAfter: now.Add(30 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	return a.sign(t, template)
}

// list returns a revocation list that is current from an hour before now until the given time.
func (a *authority) list(t *testing.T, until time.Time, serials ...int64) string {
	t.Helper()
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now.Add(-time.Hour), NextUpdate: until}
	for _, n := range serials {
		l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: now})
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// callersOf returns a directory of the callers with certificates of an authority. lists are its revocation lists, "" for none.
func callersOf(t *testing.T, a *authority, lists string) *identity.Directory {
	t.Helper()
	d, _ := callersOfBundle(t, lists, a)
	return d
}

// callersOfBundle is callersOf for a bundle of several authorities' certificates. It also returns the parsed authority.
func callersOfBundle(t *testing.T, lists string, bundle ...*authority) (*identity.Directory, *identity.Parsed) {
	t.Helper()
	var ca strings.Builder
	for _, a := range bundle {
		_ = pem.Encode(&ca, &pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}) // a Builder never fails
	}
	by := identity.Authority{
		ID: "mesh", CA: strictyaml.NewSecret(ca.String()), MaxLife: 2 * time.Hour,
		Mapping: identity.Mapping{Orgs: []string{"acme"}, Role: identity.RoleViewer},
	}
	if lists != "" {
		by.CRL = strictyaml.NewSecret(lists)
	}
	if err := errors.Join(by.Validate(), by.Parse()); err != nil {
		t.Fatal(err)
	}
	authorities := identity.NewAuthorities(identity.Certificates{Authorities: []identity.Authority{by}}, nil)
	d, err := identity.NewDirectory(nil, nil, authorities)
	if err != nil {
		t.Fatal(err)
	}
	return d, by.Parsed
}

// under returns an intermediate authority with serial number 7.
func (a *authority) under(t *testing.T, name string) *authority {
	t.Helper()
	i := newAuthority(t, name)
	template := *i.cert
	template.SerialNumber, template.PublicKey = big.NewInt(7), i.key.Public()
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, i.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if i.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return i
}

// If the root and the intermediate authority are configured, the certificates of a revoked intermediate authority are refused.
func TestARevokedIntermediateAuthority(t *testing.T) {
	root := newAuthority(t, "root")
	mesh := root.under(t, "mesh")
	chain, current := []*x509.Certificate{mesh.client(t, nil), mesh.cert}, now.Add(time.Hour)
	for lists, want := range map[string]bool{
		mesh.list(t, current):                            true, // the list of the root is optional
		mesh.list(t, current) + root.list(t, current):    true,
		mesh.list(t, current) + root.list(t, current, 7): false,
		mesh.list(t, current) + root.list(t, now, 7):     false, // a revocation is final
	} {
		d, _ := callersOfBundle(t, lists, root, mesh)
		for _, sent := range [][]*x509.Certificate{chain, chain[:1]} {
			if c, err := d.Find(t.Context(), identity.Credentials{Chain: sent}, now); (err == nil) != want {
				t.Errorf("with %d certificates: got %v, %v; want accepted %t", len(sent), c, err, want)
			}
		}
	}
}

// Warnings and the expiry of the lists concern the newest list of each issuer.
func TestWarningsOfRevocationLists(t *testing.T) {
	root := newAuthority(t, "root")
	mesh := root.under(t, "mesh")
	later := now.Add(time.Hour)
	for name, tc := range map[string]struct {
		lists, want string
		end         time.Time
	}{
		"no lists":              {"", "", time.Time{}},
		"current":               {mesh.list(t, later), "", later},
		"expired":               {mesh.list(t, now), "crl: a revocation list expired at " + now.UTC().Format(time.RFC3339), now},
		"expired and current":   {mesh.list(t, now) + mesh.list(t, later), "", later},
		"expired, of the root":  {mesh.list(t, later) + root.list(t, now), "crl: a revocation list expired", now},
		"missing":               {root.list(t, later), `crl: contains no revocation list of "CN=mesh"`, later},
		"of a different signer": {newAuthority(t, "mesh").list(t, later), `crl: contains no revocation list of "CN=mesh"`, later},
	} {
		t.Run(name, func(t *testing.T) {
			d, parsed := callersOfBundle(t, tc.lists, root, mesh)
			if end := d.Revocations()["mesh"]; !end.Equal(tc.end) {
				t.Errorf("the lists end at %s, want %s", end, tc.end)
			}
			err := parsed.Warnings(now)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("warnings: %v, want %q", err, tc.want)
			}
		})
	}
}

// A certificate identifies a caller if a configured authority has signed it for a client and if a current revocation list of that
// authority does not contain it.
func TestCertificates(t *testing.T) {
	mesh, stranger := newAuthority(t, "mesh"), newAuthority(t, "mesh") // of the same name
	current := now.Add(time.Hour)
	usage := func(u ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = u }
	}
	for name, tc := range map[string]struct {
		cert  *x509.Certificate
		lists string
		want  string // in the error, "" for none
	}{
		"accepted":                         {mesh.client(t, nil), "", ""},
		"of another authority":             {stranger.client(t, nil), "", "unknown authority"},
		"of a server":                      {mesh.client(t, usage(x509.ExtKeyUsageServerAuth)), "", "certificate does not allow client authentication"},
		"of any usage":                     {mesh.client(t, usage(x509.ExtKeyUsageAny)), "", "certificate does not allow client authentication"},
		"of no usage":                      {mesh.client(t, usage()), "", "certificate does not allow client authentication"},
		"of a server and a client":         {mesh.client(t, usage(x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)), "", ""},
		"of an authority":                  {mesh.cert, "", "not a client certificate"},
		"valid for too long":               {mesh.client(t, func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(2*time.Hour + time.Second) }), "", "validity period of the certificate exceeds 2h"},
		"expired":                          {mesh.client(t, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }), "", "expired"},
		"on no revocation list":            {mesh.client(t, nil), mesh.list(t, current, 3), ""},
		"revoked":                          {mesh.client(t, nil), mesh.list(t, current, 2), "revoked"},
		"with an expired list":             {mesh.client(t, nil), mesh.list(t, now), "no current revocation list"},
		"with a list of another authority": {mesh.client(t, nil), stranger.list(t, current), "no current revocation list"},
		"revoked by another authority":     {mesh.client(t, nil), mesh.list(t, current) + stranger.list(t, current, 2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := callersOf(t, mesh, tc.lists).Find(t.Context(), identity.Credentials{Chain: []*x509.Certificate{tc.cert}}, now)
			if tc.want != "" {
				if !errors.Is(err, identity.ErrUnknown) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("Find: got %v, %v; want an ErrUnknown with %q", c, err, tc.want)
				}
				return
			}
			if err != nil || c.Org != "acme" || c.Subject != "spiffe://corp.test/sa/train" || !strings.HasPrefix(c.Key, "mesh:") {
				t.Errorf("Find: got %+v, %v; want the caller spiffe://corp.test/sa/train of acme", c, err)
			}
		})
	}
}
