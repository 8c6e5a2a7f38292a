package identity

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Claims holds the claims of a token. It contains no secret and must not be modified.
type Claims struct {
	// Issuer and Subject hold the claims iss and sub, which are never empty. Together they identify the holder
	// of the token.
	Issuer, Subject string
	// Audiences holds the values of the claim aud.
	Audiences []string
	// IssuedAt and Expires hold the claims iat and exp. NotBefore holds nbf, or is zero if
	// the token has no nbf.
	IssuedAt, Expires, NotBefore time.Time
	// Until is the end of the token's acceptance: exp, or earlier if the issuer has a maximum token age, plus the allowed
	// clock skew.
	Until time.Time

	all map[string]any
}

// newClaims parses the registered claims.
func newClaims(all map[string]any) (*Claims, error) {
	c := &Claims{all: all, Audiences: values(all["aud"])}
	c.Issuer, _ = all["iss"].(string)
	c.Subject, _ = all["sub"].(string)
	if c.Issuer == "" || c.Subject == "" {
		return nil, invalidf("missing iss or sub")
	}
	for name, at := range map[string]*time.Time{"exp": &c.Expires, "iat": &c.IssuedAt, "nbf": &c.NotBefore} {
		value, has := all[name]
		seconds, numeric := value.(float64)
		switch {
		case !has && name == "nbf":
			continue
		case !has:
			return nil, invalidf("missing %s", name)
		case !numeric || seconds < 0 || seconds > maxSeconds:
			return nil, invalidf("claim %s is not a time", name)
		}
		whole, part := math.Modf(seconds)
		*at = time.Unix(int64(whole), int64(part*float64(time.Second)))
	}
	return c, nil
}

// maxSeconds is the maximum time that is accepted, in the year 9999.
const maxSeconds = 253402300799

// Values returns the values of a claim: one for a string, number or boolean, and each element of an array. The claim
// scope of OAuth is one string that holds several values (RFC 8693, section 4.2). A claim that begins with a slash is a
// JSON pointer (RFC 6901); any other claim is a member name. Objects have no values.
func (c *Claims) Values(claim string) []string {
	if claim == "scope" {
		text, _ := c.all[claim].(string)
		return strings.Fields(text)
	}
	if !strings.HasPrefix(claim, "/") {
		return values(c.all[claim])
	}
	var at any = c.all
	for name := range jsontext.Pointer(claim).Tokens() {
		object, _ := at.(map[string]any)
		at = object[name]
	}
	return values(at)
}

func values(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case []any:
		var all []string
		for _, element := range v {
			if _, nested := element.([]any); !nested {
				all = append(all, values(element)...)
			}
		}
		return all
	}
	return nil
}
