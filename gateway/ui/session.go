package ui

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

const (
	// sessionTime is the duration of a session.
	sessionTime = 8 * time.Hour
	// maxOfHolder is the maximum number of concurrent sessions per key or token holder, across all gateways.
	maxOfHolder = 50
	// maxOfOrg is the maximum number of concurrent sessions of the callers of an organisation, of its operators, and of the operators that
	// are not bound to an organisation. Each of these groups has its own limit.
	maxOfOrg = 1000
	// loginKeyID is the ID of the record that stores the encryption key of pending logins. No session has this ID.
	loginKeyID = "login"
)

// errNoSession means that a cookie refers to no session.
var errNoSession error = adminapi.RefusedError{Status: http.StatusUnauthorized, Reason: "the session does not exist or has expired"}

// session is the stored form of a session. Neither the cookie's value nor the token can be derived from it.
type session struct {
	// Sealed is the token, encrypted with a key that is derived from the cookie's value.
	Sealed []byte    `json:"sealed"`
	Name   string    `json:"name"`
	Began  time.Time `json:"began"`
	// Org is the organisation of the holder. It is empty for operators that are not bound to an organisation. Holder identifies the holder
	// within the organisation by key or token subject.
	Org    string `json:"org,omitempty"`
	Holder string `json:"holder"`
	// Zone is the time zone of a caller's organisation.
	Zone string `json:"zone,omitempty"`
	// Login reports that the token resulted from a login at its issuer. The token is validated as of the login time, and the session may
	// outlive it.
	Login bool `json:"login,omitempty"`
	// Lead reports that the navigation contains the pages of leads. It grants no permissions.
	Lead bool `json:"lead,omitempty"`
}

// indexes returns the store indexes that limit the number of sessions. The length of their names is bounded.
func (s *session) indexes() []store.Index {
	return []store.Index{
		{Name: "holder:" + idOf(s.Org+"/"+s.Holder), MaxRecords: maxOfHolder},
		{Name: "org:" + idOf(s.Org), MaxRecords: maxOfOrg},
	}
}

// Sessions stores sessions in the store that gateways share. It is safe for concurrent use.
type Sessions struct {
	store *store.Store[session]
	keys  *store.Store[[]byte]
	// use is the name of the console. It is part of record keys and of the derivation of encryption keys, so that the sessions of different
	// consoles are separate.
	use string
}

// NewSessions returns a Sessions that stores the sessions of one console through client. name is the name of the console. The keys of all
// stored records begin with prefix. NewSessions does not connect to the store.
func NewSessions(client redis.Cmdable, prefix, name string) *Sessions {
	return &Sessions{store.New[session](client, prefix), store.New[[]byte](client, prefix), name}
}

// idOf returns the ID of a session. The cookie's value cannot be derived from the ID.
func idOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// cipherOf returns a cipher with a key that is derived from secret for one purpose.
func (s *Sessions) cipherOf(secret []byte, purpose string) (cipher.AEAD, error) {
	return encryption.Cipher(secret, s.use+" "+purpose)
}

// Begin stores a session with a token and returns the value of its cookie. If the holder or the organisation has reached the maximum number
// of sessions, the oldest sessions end.
func (s *Sessions) Begin(ctx context.Context, token string, next session) (value string, err error) {
	value = rand.Text() + rand.Text() // 256 bits
	seal, err := s.cipherOf([]byte(value), "session")
	if err != nil {
		return "", err
	}
	next.Sealed = seal.Seal(nil, nil, []byte(token), nil) //nolint:gosec // the cipher generates the nonce
	w := store.Write[session]{Record: &next, TTL: sessionTime, Indexes: next.indexes(), Evict: true}
	_, done, err := s.store.Swap(ctx, s.use, store.Entry[session]{ID: idOf(value)}, w)
	if err == nil && !done {
		err = store.ErrUnavailable // the store has another session of a random value
	}
	return value, err
}

// Token returns the token and the session for a cookie value. It returns errNoSession if no session has that value.
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

// End ends the session whose cookie has the given value. The session ends on all gateways immediately. End returns nil if no session has
// this value.
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

// logins returns the cipher for cookies of pending logins. All gateways share its key, because a browser may return from the issuer to
// another gateway. The key is in the store; if the store loses it, pending logins fail.
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
