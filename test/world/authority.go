package world

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"testing"
	"time"
)

// Authority signs certificates for the length of a test. Serial numbers count from 1.
type Authority struct {
	Cert *x509.Certificate

	// by is who signed Cert, nil for itself.
	by     *Authority
	key    crypto.Signer
	now    time.Time
	serial int64
}

// NewAuthority returns an authority that signs its own certificate, and a day for others.
func NewAuthority(t testing.TB, name string, now time.Time) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t), now: now}
	template := authority(name)
	a.Cert = a.sign(t, template, template, a.key)
	return a
}

// Below returns an authority whose certificate a has signed.
func (a *Authority) Below(t testing.TB, name string) *Authority {
	t.Helper()
	b := &Authority{key: newKey(t), now: a.now, by: a}
	b.Cert = a.sign(t, authority(name), a.Cert, b.key)
	return b
}

func authority(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Cert.Raw}))
}

// Client returns a certificate of a client with a URI among its names and an hour to
// live, unless others say otherwise.
func (a *Authority) Client(t testing.TB, uri string, others ...func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, NotAfter: a.now.Add(time.Hour),
	}
	if uri != "" {
		template.URIs = append(template.URIs, URI(t, uri))
	}
	for _, o := range others {
		o(template)
	}
	key := newKey(t)
	leaf := a.sign(t, template, a.Cert, key)
	c := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	for by := a; by.by != nil; by = by.by {
		c.Certificate = append(c.Certificate, by.Cert.Raw)
	}
	return c
}

// URI parses one.
func URI(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Revoked returns a list of the revoked certificates, which is current until a time.
func (a *Authority) Revoked(t testing.TB, until time.Time, revoked ...*tls.Certificate) string {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: a.now.Add(-time.Hour), NextUpdate: until}
	for _, c := range revoked {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.Leaf.SerialNumber, RevocationTime: a.now})
	}
	return a.List(t, list)
}

// List signs a revocation list.
func (a *Authority) List(t testing.TB, list *x509.RevocationList) string {
	t.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, list, a.Cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// sign signs what template says for the holder of a key. An absent part of its time is a
// day around now.
func (a *Authority) sign(t testing.TB, template, parent *x509.Certificate, holder crypto.Signer) *x509.Certificate {
	t.Helper()
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	if template.NotBefore.IsZero() {
		template.NotBefore = a.now.Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = a.now.Add(24 * time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, holder.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
