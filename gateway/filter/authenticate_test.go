package filter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// certified returns a directory with the key key_globex of globex and with callers of acme by certificate, and such a certificate,
// valid at the given time.
func certified(t *testing.T, now time.Time) (*identity.Directory, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(template, parent *x509.Certificate) *x509.Certificate {
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root = sign(root, root)
	client := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), URIs: []*url.URL{{Scheme: "spiffe", Host: "corp.test", Path: "/train"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, root)
	by := identity.Authority{
		ID: "mesh", CA: strictyaml.NewSecret(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}))), MaxLife: 2 * time.Hour,
		Mapping: identity.Mapping{Orgs: []string{"acme"}, Role: identity.RoleViewer},
	}
	if err := by.Parse(); err != nil {
		t.Fatal(err)
	}
	authorities := identity.NewAuthorities(identity.Certificates{Authorities: []identity.Authority{by}}, nil)
	directory, err := identity.NewDirectory([]identity.Entry{{
		Digest: identity.DigestOf("key_globex"), Caller: identity.Caller{Org: "globex", Key: "ci"},
	}}, nil, authorities)
	if err != nil {
		t.Fatal(err)
	}
	return directory, client
}

// A certificate identifies the caller only of a request without a credential: a key takes precedence, and an invalid credential is
// refused.
func TestCredentialsBesideCertificates(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	directory, client := certified(t, now)
	p := &Pipeline{Callers: &Callers{Directory: directory, Tenants: map[string]*Tenant{"acme": {ID: "acme"}, "globex": {ID: "globex"}}}}
	for name, tc := range map[string]struct {
		header, query string
		want          string // the organisation of the caller, "" for an unknown one
	}{
		"no credential":      {"", "", "acme"},
		"a key":              {"Bearer key_globex", "", "globex"},
		"an unknown key":     {"Bearer tg_unknown", "", ""},
		"an empty key":       {"Bearer ", "", ""},
		"another scheme":     {"Basic YTpi", "", ""},
		"a bare key":         {"key_globex", "", ""},
		"a key in the query": {"", "api_key=key_globex", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := Inbound{Method: http.MethodGet, Path: "/v2/pods", Query: tc.query, Header: http.Header{}, Certificates: []*x509.Certificate{client}, Received: now}
			if tc.header != "" {
				in.Header.Set("Authorization", tc.header)
			}
			ex := p.NewExchange(in)
			err := Authenticate{Guard: NewGuard(nil, nil, nil)}.Request(t.Context(), ex)
			switch {
			case tc.want == "":
				if !errors.Is(err, identity.ErrUnknown) || ex.Caller != nil || ex.Tenant != nil {
					t.Errorf("got caller %+v, %v; want ErrUnknown", ex.Caller, err)
				}
			case err != nil || ex.Caller == nil || ex.Caller.Org != tc.want || ex.Tenant == nil || ex.Tenant.ID != tc.want:
				t.Errorf("got caller %+v, tenant %+v, %v; want one of %s", ex.Caller, ex.Tenant, err, tc.want)
			}
		})
	}
}
