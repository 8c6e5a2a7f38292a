package upstream

import (
	"crypto/cipher"
	"log/slog"

	"github.com/tollgate-dev/tollgate/config/encryption"
)

// Credential is a platform key. Printing a Credential shows a mask; only Reveal returns the key. The zero Credential has no key.
type Credential struct{ secret string }

// NewCredential returns a Credential with the given key.
func NewCredential(secret string) Credential { return Credential{secret: secret} }

// Reveal returns the key.
func (c Credential) Reveal() string { return c.secret }

// Cipher returns a cipher for a purpose. Its key is derived from the platform key, so that all gateways with the same platform key can
// decrypt the data.
func (c Credential) Cipher(purpose string) (cipher.AEAD, error) {
	return encryption.Cipher([]byte(c.secret), purpose)
}

// authorization returns the value of the Authorization header.
func (c Credential) authorization() string { return "Bearer " + c.secret }

// String implements fmt.Stringer.
func (Credential) String() string { return mask }

// GoString implements fmt.GoStringer.
func (Credential) GoString() string { return mask }

// LogValue implements slog.LogValuer.
func (Credential) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalText implements encoding.TextMarshaler.
func (Credential) MarshalText() ([]byte, error) { return []byte(mask), nil }
