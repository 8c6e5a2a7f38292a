package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
)

const (
	// minFetchInterval is the minimum time between two reads of an issuer's keys. It limits the reads that tokens with
	// unknown keys cause, which anyone can send.
	minFetchInterval = 10 * time.Second
	// refreshInterval is the interval between reads of an issuer's keys, in addition to reads for a token with an unknown key. A key that the
	// issuer has withdrawn may be accepted for up to this time.
	refreshInterval = 15 * time.Minute
	// maxKeys is the maximum number of keys of an issuer; minRSA is the minimum size of an RSA key in bits.
	maxKeys = 100
	minRSA  = 2048
)

// IssuerKeys caches the public keys of issuers and their revoked tokens. It outlives the Verifiers that use it, so that a
// new configuration does not require reading the keys again. It is safe for concurrent use.
type IssuerKeys struct {
	now    func() time.Time
	logger *slog.Logger

	revoked atomic.Pointer[revoked] // nil while unknown

	mu   sync.Mutex
	sets map[source]*keySet
}

// source identifies the URLs of keys.
type source struct{ issuer, jwks string }

// NewIssuerKeys returns an IssuerKeys without issuers and revocations.
func NewIssuerKeys(now func() time.Time, logger *slog.Logger) *IssuerKeys {
	k := &IssuerKeys{now: now, logger: logger, sets: make(map[source]*keySet)}
	k.Revoke(nil)
	return k
}

// of returns the keys of an issuer. The keys of a new issuer have not been read yet.
func (k *IssuerKeys) of(c TokenIssuer) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	from := source{c.URL, c.JWKS}
	s := k.sets[from]
	if s == nil {
		s = &keySet{source: from, owner: k}
		k.sets[from] = s
	}
	return s
}

// Retain drops the keys that none of the verifiers uses.
func (k *IssuerKeys) Retain(verifiers ...*Verifier) {
	used := make(map[source]bool)
	for _, v := range verifiers {
		for _, i := range v.issuers {
			used[i.keys.source] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.sets, func(s source, _ *keySet) bool { return !used[s] })
}

func (k *IssuerKeys) all() []*keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.SortedFunc(maps.Values(k.sets), func(a, b *keySet) int { return strings.Compare(a.issuer, b.issuer) })
}

// Refresh reads the keys of all issuers that are due, concurrently. The keys of a new issuer are due immediately.
func (k *IssuerKeys) Refresh(ctx context.Context) {
	var reading errgroup.Group
	for _, s := range k.all() {
		reading.Go(func() error { return panics.Catch(func() { s.read(ctx, s.due) }) })
	}
	panics.Raise(reading.Wait())
}

// IssuerStatus describes the state of an issuer's keys.
type IssuerStatus struct {
	// Issuer is the URL of the issuer.
	Issuer string
	// Fetched is the time of the last successful read, or zero.
	Fetched time.Time
	// Err is the error of the last read, or nil.
	Err error
}

// Status returns the state of each issuer's keys, sorted by URL.
func (k *IssuerKeys) Status() []IssuerStatus {
	sets := k.all()
	list := make([]IssuerStatus, len(sets))
	for i, s := range sets {
		s.mu.Lock()
		list[i] = IssuerStatus{Issuer: s.issuer, Fetched: s.good, Err: s.fail}
		s.mu.Unlock()
	}
	return list
}

// keySet holds the keys of one issuer. It keeps the old keys until new ones have been read.
type keySet struct {
	source
	owner *IssuerKeys

	mu          sync.Mutex // guards the fields below
	keys        []key
	reading     chan struct{} // closed at the end of the current read; nil between reads
	good, tried time.Time
	fail        error
}

// key is a public key of an issuer.
type key struct {
	id, algorithm string // algorithm is "" if the key allows any suitable one
	public        any
}

// find returns the key with which a token claims to be signed. If the token names no key, there must be exactly one for
// its algorithm.
func (s *keySet) find(ctx context.Context, h header) (any, error) {
	if public := s.known(h); public != nil {
		return public, nil
	}
	s.read(ctx, s.mayRead)
	public := s.known(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case public != nil:
		return public, nil
	case s.fail != nil:
		return nil, fmt.Errorf("%w: %w", ErrIssuerUnavailable, s.fail)
	case s.good.IsZero():
		return nil, ErrIssuerUnavailable
	}
	return nil, invalidf("signed with an unknown key")
}

func (s *keySet) known(h header) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []any
	for _, k := range s.keys {
		if (h.KeyID == "" || k.id == h.KeyID) && k.fits(h.Algorithm) {
			found = append(found, k.public)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// due reports whether the keys should be read. The caller must hold s.mu.
func (s *keySet) due() bool {
	return s.tried.IsZero() || s.fail != nil && s.mayRead() || s.owner.now().Sub(s.tried) >= refreshInterval
}

// mayRead reports whether minFetchInterval has passed since the last read. The caller must hold s.mu.
func (s *keySet) mayRead() bool {
	return s.tried.IsZero() || s.owner.now().Sub(s.tried) >= minFetchInterval
}

// read starts a read of the keys if wanted returns true, and waits for the current read or the end of ctx.
func (s *keySet) read(ctx context.Context, wanted func() bool) {
	s.mu.Lock()
	done := s.reading
	if done == nil && wanted() {
		done = make(chan struct{})
		s.reading, s.tried = done, s.owner.now()
		go s.renew(context.WithoutCancel(ctx), done)
	}
	s.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// renew replaces the keys with the keys that the issuer serves now. It logs a line when reads begin to fail or to succeed again.
func (s *keySet) renew(ctx context.Context, done chan struct{}) {
	defer close(done)
	fetching, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var keys []key
	var err error
	if p := panics.Catch(func() { keys, err = s.fetch(fetching) }); p != nil {
		err = p
	}
	s.mu.Lock()
	changed := (err == nil) != (s.fail == nil)
	if s.fail = err; err == nil {
		s.keys, s.good = keys, s.owner.now()
	}
	s.reading = nil
	s.mu.Unlock()
	if changed {
		s.owner.logger.WarnContext(ctx, "issuer keys availability changed", "issuer", s.issuer, "available", err == nil, "error", fmt.Sprint(err))
	}
}

// parseKeys parses a JSON Web Key Set. It skips keys that cannot verify a signature of a known algorithm: keys for
// encryption, of other types, too small, or symmetric.
func parseKeys(text []byte) ([]key, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("issuer must return a JSON Web Key Set with at most %d keys", maxKeys)
	}
	var keys []key
	for _, text := range set.Keys {
		entry, err := jwk.ParseKey(text)
		if err != nil {
			continue // RFC 7517, section 5
		}
		if k, ok := newKey(entry); ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("key set does not contain a supported signature key")
	}
	return keys, nil
}

func newKey(entry jwk.Key) (key, bool) {
	use, hasUse := entry.KeyUsage()
	operations, hasOperations := entry.KeyOps()
	if entry.KeyType() == jwa.OctetSeq() || hasUse && use != string(jwk.ForSignature) ||
		hasOperations && !slices.Contains(operations, jwk.KeyOpVerify) {
		return key{}, false
	}
	public, err := entry.PublicKey() // in case an issuer publishes a private key
	if err != nil {
		return key{}, false
	}
	k := key{}
	k.id, _ = entry.KeyID()
	if algorithm, ok := entry.Algorithm(); ok {
		k.algorithm = algorithm.String()
	}
	if err := jwk.Export(public, &k.public); err != nil {
		return key{}, false
	}
	return k, slices.ContainsFunc(Algorithm("").Values(), k.fits)
}

// fits reports whether the key verifies signatures of the algorithm.
func (k key) fits(algorithm string) bool {
	if k.algorithm != "" && k.algorithm != algorithm {
		return false
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")) && public.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		return algorithm == curves[public.Curve]
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

// curves maps curves to algorithms (RFC 7518, section 3.4).
var curves = map[elliptic.Curve]string{elliptic.P256(): "ES256", elliptic.P384(): "ES384", elliptic.P521(): "ES512"}
