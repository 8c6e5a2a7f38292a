package identity

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxToken is the greatest length of a token, in bytes.
const MaxToken = 8 << 10

// LooksLikeToken reports whether a credential has the form of a signed token, with any content:
// three parts in base64url (RFC 7515, section 3.1), of which the first is an object of
// JSON. No other credential is to be taken for one, nor a token for another credential.
func LooksLikeToken(credential string) bool {
	head, rest, _ := strings.Cut(credential, ".")
	payload, signature, three := strings.Cut(rest, ".")
	text, err := encoding.DecodeString(head)
	return three && err == nil && strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n"), "{") && base64url(payload) && base64url(signature)
}

var encoding = base64.RawURLEncoding.Strict()

func base64url(s string) bool {
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// header holds the members read of a token's header.
type header struct {
	Algorithm string         `json:"alg"`
	KeyID     string         `json:"kid"`
	Type      string         `json:"typ"`
	Critical  jsontext.Value `json:"crit"`
}

// unverified is a token that was parsed.
type unverified struct {
	raw    string
	header header
	claims *Claims
}

// parse reads a token. Members that are named twice are an error, so that no two
// readers see different ones.
func parse(token string) (*unverified, error) {
	if len(token) > MaxToken {
		return nil, invalidf("it has more than %d bytes", MaxToken)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, invalidf("it has %d parts and not three", len(parts))
	}
	t := &unverified{raw: token}
	if err := decode(parts[0], &t.header); err != nil {
		return nil, invalidf("its header cannot be read: %w", err)
	}
	var claims map[string]any
	if err := decode(parts[1], &claims); err != nil {
		return nil, invalidf("its claims cannot be read: %w", err)
	}
	var err error
	t.claims, err = newClaims(claims)
	return t, err
}

// decode reads a part of a token. Its errors do not have the text.
func decode(part string, into any) error {
	text, err := encoding.DecodeString(part)
	if err != nil {
		return errors.New("it is not base64url")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.New("it is not a JSON object of the required types without duplicate members")
	}
	return nil
}

// accepts reports whether the type says that the token is one for access, RFC 9068, section
// 2.1: not, for example, one that ends a session or proves possession of a key.
func (h header) accepted() bool {
	switch strings.TrimPrefix(strings.ToLower(h.Type), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}
