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

// renewed returns a with another certificate of the same name and key, with serial number 3. Each of the two has signed the other.
func (a *authority) renewed(t *testing.T) *authority {
	t.Helper()
	template := *a.cert
	template.SerialNumber = big.NewInt(3)
	return &authority{a.sign(t, &template), a.key}
}

// The certificates of an authority are refused if a configured authority at any level above it revoked the authority or its issuer.
func TestARevokedIntermediateAuthority(t *testing.T) {
	root := newAuthority(t, "root")
	sub := root.under(t, "sub")
	mesh := sub.under(t, "mesh")
	renewed := root.renewed(t)
	chain, current := []*x509.Certificate{mesh.client(t, nil), mesh.cert, sub.cert}, now.Add(time.Hour)
	for name, tc := range map[string]struct {
		lists string
		want  bool
	}{
		"no list above":               {"", true}, // the lists of root and sub are optional
		"of the root":                 {root.list(t, current), true},
		"of both":                     {root.list(t, current) + sub.list(t, current), true},
		"expired":                     {root.list(t, now) + sub.list(t, now), true},
		"of another serial number":    {root.list(t, current, 8) + sub.list(t, current, 8), true},
		"mesh revoked":                {sub.list(t, current, 7), false},
		"mesh revoked, expired":       {sub.list(t, now, 7), false}, // a revocation is final
		"sub revoked":                 {root.list(t, current, 7), false},
		"sub revoked, expired":        {root.list(t, now, 7), false},
		"sub revoked, with all lists": {root.list(t, current, 7) + sub.list(t, current), false},
	} {
		for _, bundle := range [][]*authority{{root, sub, mesh}, {mesh, sub, root}, {renewed, mesh, sub, root}} {
			d, _ := callersOfBundle(t, mesh.list(t, current)+tc.lists, bundle...)
			for n := range chain {
				if c, err := d.Find(t.Context(), identity.Credentials{Chain: chain[:n+1]}, now); (err == nil) != tc.want {
					t.Errorf("%s: with %d authorities and %d certificates: got %v, %v; want accepted %t", name, len(bundle), n+1, c, err, tc.want)
				}
			}
		}
	}
}

// An expired list of the root affects only the certificates of the root that are not configured.
func TestAnExpiredListOfTheRoot(t *testing.T) {
	root := newAuthority(t, "root")
	mesh, other := root.under(t, "mesh"), root.under(t, "other")
	current := now.Add(time.Hour)
	d, _ := callersOfBundle(t, mesh.list(t, current)+other.list(t, current)+root.list(t, now), root, mesh)
	for name, tc := range map[string]struct {
		chain []*x509.Certificate
		want  bool
	}{
		"of mesh":                        {[]*x509.Certificate{mesh.client(t, nil)}, true},
		"of mesh, with its issuer":       {[]*x509.Certificate{mesh.client(t, nil), mesh.cert}, true},
		"of the root":                    {[]*x509.Certificate{root.client(t, nil)}, false},
		"of an authority not configured": {[]*x509.Certificate{other.client(t, nil), other.cert}, false},
	} {
		c, err := d.Find(t.Context(), identity.Credentials{Chain: tc.chain}, now)
		if (err == nil) != tc.want || err != nil && !strings.Contains(err.Error(), "no current revocation list") {
			t.Errorf("%s: got %v, %v; want accepted %t", name, c, err, tc.want)
		}
	}
}

// Warnings and the expiry of the lists concern the newest list of each issuer, except issuers of other configured authorities.
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
		"expired, of the root":  {mesh.list(t, later) + root.list(t, now), "", later},
		"expired, of both":      {mesh.list(t, now) + root.list(t, now.Add(-time.Minute)), "crl: a revocation list expired at " + now.UTC().Format(time.RFC3339), now},
		"missing":               {root.list(t, later), `crl: contains no revocation list of "CN=mesh"`, time.Time{}},
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

// A renewed certificate of an authority does not make the list of the authority optional.
func TestAnExpiredListOfARenewedAuthority(t *testing.T) {
	mesh := newAuthority(t, "mesh")
	d, parsed := callersOfBundle(t, mesh.list(t, now), mesh, mesh.renewed(t))
	if end := d.Revocations()["mesh"]; !end.Equal(now) {
		t.Errorf("the lists end at %s, want %s", end, now)
	}
	if parsed.Warnings(now) == nil {
		t.Error("there is no warning about the expired list")
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
