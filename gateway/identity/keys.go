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
	// minFetchInterval is the least time between two attempts to read the keys of an issuer: what
	// tokens with unknown keys, of which anyone can send many, can cause.
	minFetchInterval = 10 * time.Second
	// pollInterval is how often Run looks for keys that are due.
	pollInterval = 5 * time.Second
	// maxKeys bounds the keys of an issuer, minRSA the size of those, in bits.
	maxKeys = 100
	minRSA  = 2048
)

// IssuerKeys are the public keys of issuers, read from them and kept, and which of their tokens
// are revoked. They outlast the Verifiers that use them, so that another configuration does
// not have to read them anew. They are safe for concurrent use.
type IssuerKeys struct {
	now    func() time.Time
	logger *slog.Logger

	revoked atomic.Pointer[revoked] // nil where that is not known

	mu   sync.Mutex
	sets map[source]*keySet
}

// source is where keys come from and how often they are read.
type source struct {
	issuer, jwks string
	refresh      time.Duration
}

// NewIssuerKeys returns Keys of no issuer, no token of which is revoked.
func NewIssuerKeys(now func() time.Time, logger *slog.Logger) *IssuerKeys {
	k := &IssuerKeys{now: now, logger: logger, sets: make(map[source]*keySet)}
	k.Revoke(nil)
	return k
}

// of returns the keys of an issuer, which are not read yet if it is a new one.
func (k *IssuerKeys) of(c TokenIssuer) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	from := source{c.URL, c.JWKS, c.Refresh}
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

// Run reads keys when they are due, those that were never read at once, until ctx ends.
func (k *IssuerKeys) Run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		k.Refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refresh reads the keys that are due, of all issuers at once.
func (k *IssuerKeys) Refresh(ctx context.Context) {
	var reading errgroup.Group
	for _, s := range k.all() {
		reading.Go(func() error { return panics.Catch(func() { s.read(ctx, s.due) }) })
	}
	panics.Raise(reading.Wait())
}

// IssuerStatus is how the keys of an issuer are doing.
type IssuerStatus struct {
	// Issuer is its URL.
	Issuer string
	// Fetched is when the keys were last read, zero for never.
	Fetched time.Time
	// Err is how the last attempt ended.
	Err error
}

// Status returns that of each issuer.
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

// keySet is the keys of one issuer. Known keys stay known until they can be read again.
type keySet struct {
	source
	owner *IssuerKeys

	mu          sync.Mutex // guards what follows
	keys        []key
	reading     chan struct{} // closed when they were read; nil when they are not being read
	good, tried time.Time
	fail        error
}

// key is a public key of an issuer.
type key struct {
	id, algorithm string // algorithm is "" for any that fits
	public        any
}

// find returns the key that a token says it is signed with. A token that does not say is
// signed with the one there is for its algorithm.
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
	return nil, invalidf("its key is none of its issuer's")
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

// due reports whether the keys are to be read. s.mu is held.
func (s *keySet) due() bool {
	return s.tried.IsZero() || s.fail != nil && s.mayRead() || s.owner.now().Sub(s.tried) >= s.refresh
}

// mayRead reports whether the keys may be read because one is not known. s.mu is held.
func (s *keySet) mayRead() bool {
	return s.tried.IsZero() || s.owner.now().Sub(s.tried) >= minFetchInterval
}

// read reads the keys if that is wanted, and waits for those that are being read. It returns
// when ctx ends, too.
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

// renew puts the keys that the issuer has now in the place of those that are known. That
// it stops or begins to answer is one line each.
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
		s.owner.logger.WarnContext(ctx, "keys of an issuer", "issuer", s.issuer, "answers", err == nil, "error", fmt.Sprint(err))
	}
}

// parseKeys reads a JSON Web Key Set. Keys that verify no signature of a known algorithm
// are left out: those for encryption, of other types, too small, or symmetric.
func parseKeys(text []byte) ([]key, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("they are not a JSON Web Key Set of at most %d", maxKeys)
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
		return nil, errors.New("there is none that verifies a signature")
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
	public, err := entry.PublicKey() // should an issuer publish a private one
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

// fits reports whether the key verifies signatures of an algorithm.
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

// curves are the algorithms of curves, RFC 7518, section 3.4.
var curves = map[elliptic.Curve]string{elliptic.P256(): "ES256", elliptic.P384(): "ES384", elliptic.P521(): "ES512"}
