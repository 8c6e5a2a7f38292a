package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Claims are the members of a token.
type Claims = map[string]any

// Issuer is an issuer on loopback. Its zero settings are those of one that works. It is safe
// for concurrent use.
type Issuer struct {
	URL string

	mu     sync.Mutex
	keys   []Key
	down   bool
	asked  map[string]int
	custom map[string]http.HandlerFunc
}

// Key is a key pair with its id.
type Key struct {
	ID, Algorithm string
	Private       crypto.Signer
}

// RunT runs an issuer with one key until the test ends.
func RunT(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{asked: make(map[string]int), custom: make(map[string]http.HandlerFunc)}
	s := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(s.Close)
	i.URL = s.URL
	i.Rotate(t, "ES256")
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	down, custom, keys := i.down, i.custom[r.URL.Path], i.keys
	i.mu.Unlock()
	var answer any
	switch {
	case custom != nil:
		custom(w, r)
		return
	case down:
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/.well-known/openid-configuration":
		answer = map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/jwks"}
	case r.URL.Path == "/jwks":
		list := make([]map[string]string, len(keys))
		for n, k := range keys {
			list[n] = k.JWK()
		}
		answer = map[string]any{"keys": list}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a caller that left is no fault
}

// Down makes the issuer answer 503, or answer again.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Handle answers requests for a path with h, nil as usual.
func (i *Issuer) Handle(path string, h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.custom[path] = h
}

// Asked returns how often a path was asked for.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// Rotate makes a key of an algorithm and publishes it in the place of all others, or beside
// those that are to be kept.
func (i *Issuer) Rotate(t testing.TB, algorithm string, kept ...Key) Key {
	t.Helper()
	k := NewKey(t, algorithm)
	i.Publish(append([]Key{k}, kept...)...)
	return k
}

// Publish publishes keys and no others. Tokens are signed with the first.
func (i *Issuer) Publish(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Key returns the key that tokens are signed with.
func (i *Issuer) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[0]
}

// Token returns a token of the issuer with claims: iss is added if they have none.
func (i *Issuer) Token(t testing.TB, claims Claims) string {
	t.Helper()
	all := Claims{"iss": i.URL}
	maps.Copy(all, claims)
	return i.Key().Sign(t, nil, all)
}

// NewKey makes a key pair.
func NewKey(t testing.TB, algorithm string) Key {
	t.Helper()
	var signer crypto.Signer
	var err error
	switch algorithm {
	case "ES256":
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "RS256", "PS256":
		signer, err = rsa.GenerateKey(rand.Reader, 2048)
	case "EdDSA":
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("no key is made for %s", algorithm)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Key{ID: rand.Text(), Algorithm: algorithm, Private: signer}
}

// JWK returns the public key as its issuer publishes it.
func (k Key) JWK() map[string]string {
	jwk := map[string]string{"kid": k.ID, "use": "sig", "alg": k.Algorithm}
	switch public := k.Private.Public().(type) {
	case *ecdsa.PublicKey:
		point, err := public.Bytes() // 4, x, y
		if err != nil {
			panic(err)
		}
		half := (len(point) - 1) / 2
		jwk["kty"], jwk["crv"], jwk["x"], jwk["y"] = "EC", public.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
	case *rsa.PublicKey:
		jwk["kty"], jwk["n"], jwk["e"] = "RSA", encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes())
	case ed25519.PublicKey:
		jwk["kty"], jwk["crv"], jwk["x"] = "OKP", "Ed25519", encode(public)
	}
	return jwk
}

// Sign returns a token. header is added to the key's own, and wins.
func (k Key) Sign(t testing.TB, header, claims Claims) string {
	t.Helper()
	full := Claims{"alg": k.Algorithm, "kid": k.ID, "typ": "JWT"}
	maps.Copy(full, header)
	for name, value := range full {
		if value == nil {
			delete(full, name)
		}
	}
	return k.SignText(t, text(t, full), text(t, claims))
}

// SignText returns a token of a header and claims as they are written.
func (k Key) SignText(t testing.TB, header, claims string) string {
	t.Helper()
	input := encode([]byte(header)) + "." + encode([]byte(claims))
	digest := sha256.Sum256([]byte(input))
	var signature []byte
	var err error
	switch private := k.Private.(type) {
	case *ecdsa.PrivateKey:
		r, s, serr := ecdsa.Sign(rand.Reader, private, digest[:])
		if err = serr; err == nil {
			size := (private.Params().BitSize + 7) / 8
			signature = append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
		}
	case *rsa.PrivateKey:
		if k.Algorithm == "PS256" {
			signature, err = rsa.SignPSS(rand.Reader, private, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		} else {
			signature, err = rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, digest[:])
		}
	case ed25519.PrivateKey:
		signature = ed25519.Sign(private, []byte(input))
	}
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + encode(signature)
}

// Confuse returns a token that is signed by HMAC with the public key as its secret, as it is in
// PEM: the one that a verifier accepts if it believes alg.
func (k Key) Confuse(t testing.TB, claims Claims) string {
	t.Helper()
	secret, err := x509.MarshalPKIXPublicKey(k.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	input := encode(fmt.Appendf(nil, `{"alg":"HS256","kid":%q}`, k.ID)) + "." + encode([]byte(text(t, claims)))
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(input)) // a hash takes everything
	return input + "." + encode(mac.Sum(nil))
}

func text(t testing.TB, claims Claims) string {
	t.Helper()
	b, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
