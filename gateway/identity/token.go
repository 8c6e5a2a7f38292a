package identity

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxToken is the maximum length of a token in bytes.
const MaxToken = 8 << 10

// IsToken reports whether a credential has the form of a signed token: three base64url parts (RFC 7515, section
// 3.1), where the first part decodes to a JSON object. Use it to distinguish tokens from keys.
func IsToken(credential string) bool {
	head, rest, _ := strings.Cut(credential, ".")
	payload, signature, three := strings.Cut(rest, ".")
	text, err := encoding.DecodeString(head)
	return three && err == nil && strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n"), "{") &&
		base64url(payload) && base64url(signature)
}

var encoding = base64.RawURLEncoding.Strict()

func base64url(s string) bool {
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// header holds the fields of a token header that are used.
type header struct {
	Algorithm string         `json:"alg"`
	KeyID     string         `json:"kid"`
	Type      string         `json:"typ"`
	Critical  jsontext.Value `json:"crit"`
}

// unverified is a parsed token whose signature has not been verified.
type unverified struct {
	raw    string
	header header
	claims *Claims
}

// parse parses a token. It rejects duplicate members, so that all parsers agree on the content.
func parse(token string) (*unverified, error) {
	if len(token) > MaxToken {
		return nil, invalidf("longer than %d bytes", MaxToken)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, invalidf("%d parts, want three", len(parts))
	}
	t := &unverified{raw: token}
	if err := decode(parts[0], &t.header); err != nil {
		return nil, invalidf("invalid header: %w", err)
	}
	if _, err := encoding.DecodeString(parts[2]); err != nil { // the library accepts other spellings of the last character
		return nil, invalidf("invalid signature: not base64url")
	}
	var claims map[string]any
	if err := decode(parts[1], &claims); err != nil {
		return nil, invalidf("invalid claims: %w", err)
	}
	var err error
	t.claims, err = newClaims(claims)
	return t, err
}

// decode decodes a part of a token. Its errors do not contain the text.
func decode(part string, into any) error {
	text, err := encoding.DecodeString(part)
	if err != nil {
		return errors.New("not base64url")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.New("must be a JSON object without duplicate fields, and each field must have the expected type")
	}
	return nil
}

// accepted reports whether the token is an access token by its type (RFC 9068, section 2.1). An absent type is accepted.
// Other types, for example, end a session or prove possession of a key.
func (h header) accepted() bool {
	switch strings.TrimPrefix(strings.ToLower(h.Type), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}
