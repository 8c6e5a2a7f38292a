package ui

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/cas"
)

const (
	// sessionTime is the length of a session.
	sessionTime = 8 * time.Hour
	// maxSessions bounds the sessions of all gateways.
	maxSessions = 10_000
	// allSessions is the name that sessions are kept under in the place of an organisation, and of the index that has them all.
	allSessions = "all"
)

// errNoSession means that a cookie belongs to no session.
var errNoSession = errors.New("there is no such session")

// session is the stored form of a session. Neither the cookie's value nor the token can be read from it.
type session struct {
	// Sealed is the token, encrypted under a key that the cookie's value yields.
	Sealed []byte    `json:"sealed"`
	Name   string    `json:"name"`
	Began  time.Time `json:"began"`
	// Login says that the token came from a login at its issuer. It is judged as of then, and the session outlasts it.
	Login bool `json:"login,omitempty"`
	// Lead says that the navigation has the pages of leads. It gives no rights.
	Lead bool `json:"lead,omitempty"`
}

// Sessions keeps sessions in the store that gateways share. It is safe for concurrent use.
type Sessions struct {
	store *cas.Store[session]
	use   string
}

// NewSessions returns the sessions of one use whose keys begin with prefix. Sessions of another use, beside them in the store, are none of
// them: their tokens are sealed under keys of their own. It does not dial.
func NewSessions(client redis.Cmdable, prefix, use string) *Sessions {
	return &Sessions{cas.New[session](client, prefix), use}
}

// idOf returns the id of a session, by which the value of its cookie cannot be found.
func idOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// cipherOf returns the cipher of the token of a session.
func (s *Sessions) cipherOf(value string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(value), nil, "tollgate "+s.use+" session", 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal a session: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Begin stores a session with a token, and returns the value of its cookie. The error is [cas.ErrFull] if there are too many.
func (s *Sessions) Begin(ctx context.Context, token string, next session) (value string, err error) {
	value = rand.Text() + rand.Text() // 256 bits
	seal, err := s.cipherOf(value)
	if err != nil {
		return "", err
	}
	next.Sealed = seal.Seal(nil, nil, []byte(token), nil) //nolint:gosec // the cipher draws a random nonce itself
	w := cas.Write[session]{
		Record: &next, TTL: sessionTime, In: []cas.Index{{Name: allSessions, Most: maxSessions}},
	}
	_, done, err := s.store.Swap(ctx, allSessions, cas.Entry[session]{ID: idOf(value)}, w)
	if err == nil && !done {
		err = cas.ErrUnavailable // the store has another session of a random value
	}
	return value, err
}

// Token returns a session and its token by the value of its cookie. The error is errNoSession, or one of the store.
func (s *Sessions) Token(ctx context.Context, value string) (token string, of session, err error) {
	e, err := s.store.Look(ctx, allSessions, idOf(value))
	if err != nil {
		return "", of, err
	}
	if e.Record == nil {
		return "", of, errNoSession
	}
	seal, err := s.cipherOf(value)
	if err != nil {
		return "", of, err
	}
	text, err := seal.Open(nil, nil, e.Record.Sealed, nil)
	if err != nil {
		return "", of, errNoSession
	}
	return string(text), *e.Record, nil
}

// End ends a session, at every gateway at once.
func (s *Sessions) End(ctx context.Context, value string) error {
	for {
		e, err := s.store.Get(ctx, allSessions, idOf(value))
		if err != nil || e.Record == nil {
			return err
		}
		if _, done, err := s.store.Swap(ctx, allSessions, e, cas.Write[session]{In: []cas.Index{{Name: allSessions}}}); done || err != nil {
			return err
		}
	}
}
