package upstream

import (
	"crypto/cipher"
	"log/slog"

	"github.com/tollgate-dev/tollgate/config/encryption"
)

// Credential is a platform key. Every way of printing it shows a mask; only
// Reveal returns it. The zero value is no credential.
type Credential struct{ secret string }

// NewCredential wraps a platform key.
func NewCredential(secret string) Credential { return Credential{secret: secret} }

// Reveal returns the key itself.
func (c Credential) Reveal() string { return c.secret }

// Cipher returns a cipher for one purpose, under a key that is derived from the platform key: all
// gateways with the platform key have it.
func (c Credential) Cipher(purpose string) (cipher.AEAD, error) {
	return encryption.Cipher([]byte(c.secret), purpose)
}

// authorization is the header value that it is sent as.
func (c Credential) authorization() string { return "Bearer " + c.secret }

// IsZero reports whether there is no key.
func (c Credential) IsZero() bool { return c.secret == "" }

// String implements fmt.Stringer.
func (Credential) String() string { return mask }

// GoString implements fmt.GoStringer.
func (Credential) GoString() string { return mask }

// LogValue implements slog.LogValuer.
func (Credential) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalText implements encoding.TextMarshaler.
func (Credential) MarshalText() ([]byte, error) { return []byte(mask), nil }
