package ui

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

const (
	// sessionTime is the length of a session.
	sessionTime = 8 * time.Hour
	// maxOfHolder is the number of sessions that the holder of one key or token can have at a time, at all gateways together.
	maxOfHolder = 50
	// maxOfOrg is the number of sessions that the callers of one organisation can have at a time, or its operators. The operators who are
	// bound to no organisation have as many.
	maxOfOrg = 1000
	// loginKeyID is the id of the record that has the key of logins under way. No session has this id.
	loginKeyID = "login"
)

// errNoSession means that a cookie belongs to no session.
var errNoSession = errors.New("there is no such session")

// session is the stored form of a session. Neither the cookie's value nor the token can be read from it.
type session struct {
	// Sealed is the token, encrypted under a key that the cookie's value yields.
	Sealed []byte    `json:"sealed"`
	Name   string    `json:"name"`
	Began  time.Time `json:"began"`
	// Org is the organisation of the holder, empty for operators who are bound to none. Holder identifies the holder in the organisation: the
	// key, or the subject of a token.
	Org    string `json:"org,omitempty"`
	Holder string `json:"holder"`
	// Login says that the token came from a login at its issuer. It is judged as of then, and the session outlasts it.
	Login bool `json:"login,omitempty"`
	// Lead says that the navigation has the pages of leads. It gives no rights.
	Lead bool `json:"lead,omitempty"`
}

// indexes returns the indexes that bound the number of sessions. Their names have a bounded length.
func (s *session) indexes() []store.Index {
	return []store.Index{{Name: "holder:" + idOf(s.Org+"/"+s.Holder), MaxRecords: maxOfHolder}, {Name: "org:" + idOf(s.Org), MaxRecords: maxOfOrg}}
}

// Sessions keeps sessions in the store that gateways share. It is safe for concurrent use.
type Sessions struct {
	store *store.Store[session]
	keys  *store.Store[[]byte]
	// use separates the sessions of one console from those of another: it is part of the keys of their records, and of the derivation of
	// the keys that encrypt them.
	use string
}

// NewSessions returns the sessions of the console named use. The keys of their records begin with prefix. It does not dial.
func NewSessions(client redis.Cmdable, prefix, use string) *Sessions {
	return &Sessions{store.New[session](client, prefix), store.New[[]byte](client, prefix), use}
}

// idOf returns the id of a session, by which the value of its cookie cannot be found.
func idOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// cipherOf returns the cipher under a key that is derived from a secret for one purpose.
func (s *Sessions) cipherOf(secret []byte, purpose string) (cipher.AEAD, error) {
	return encryption.Cipher(secret, s.use+" "+purpose)
}

// Begin stores a session with a token, and returns the value of its cookie. If the holder or the organisation has as many sessions as it
// may, the oldest ones end.
func (s *Sessions) Begin(ctx context.Context, token string, next session) (value string, err error) {
	value = rand.Text() + rand.Text() // 256 bits
	seal, err := s.cipherOf([]byte(value), "session")
	if err != nil {
		return "", err
	}
	next.Sealed = seal.Seal(nil, nil, []byte(token), nil) //nolint:gosec // the cipher draws a random nonce itself
	w := store.Write[session]{Record: &next, TTL: sessionTime, Indexes: next.indexes(), Evict: true}
	_, done, err := s.store.Swap(ctx, s.use, store.Entry[session]{ID: idOf(value)}, w)
	if err == nil && !done {
		err = store.ErrUnavailable // the store has another session of a random value
	}
	return value, err
}

// Token returns a session and its token by the value of its cookie. The error is errNoSession, or one of the store.
func (s *Sessions) Token(ctx context.Context, value string) (token string, of session, err error) {
	e, err := s.store.Peek(ctx, s.use, idOf(value))
	if err != nil {
		return "", of, err
	}
	if e.Record == nil {
		return "", of, errNoSession
	}
	seal, err := s.cipherOf([]byte(value), "session")
	if err != nil {
		return "", of, err
	}
	text, err := seal.Open(nil, nil, e.Record.Sealed, nil)
	if err != nil {
		return "", of, errNoSession
	}
	return string(text), *e.Record, nil
}

// End ends a session, at every gateway at once. There need not be one with the value.
func (s *Sessions) End(ctx context.Context, value string) error {
	for {
		e, err := s.store.Peek(ctx, s.use, idOf(value))
		if err != nil || e.Record == nil {
			return err
		}
		if _, done, err := s.store.Swap(ctx, s.use, e, store.Write[session]{Indexes: e.Record.indexes()}); done || err != nil {
			return err
		}
	}
}

// logins returns the cipher of cookies of logins under way. All gateways have the same one, because a browser may return from the issuer to
// another gateway. Its key is in the store; a login under way fails if the store loses it.
func (s *Sessions) logins(ctx context.Context) (cipher.AEAD, error) {
	e, err := s.keys.Peek(ctx, s.use, loginKeyID)
	if err == nil && e.Record == nil {
		key := []byte(rand.Text() + rand.Text())
		e, _, err = s.keys.Swap(ctx, s.use, store.Entry[[]byte]{ID: loginKeyID}, store.Write[[]byte]{Record: &key})
	}
	if err != nil {
		return nil, err
	}
	return s.cipherOf(*e.Record, "login")
}
