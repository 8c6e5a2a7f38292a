package identity

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Claims holds the claims of a token. It holds no secret and must not be changed.
type Claims struct {
	// Issuer and Subject are iss and sub, neither empty. Together they name the
	// holder of the token.
	Issuer, Subject string
	// Audiences are those of aud.
	Audiences []string
	// IssuedAt and Expires are iat and exp; NotBefore is nbf, zero without one.
	IssuedAt, Expires, NotBefore time.Time
	// Until is when the token ceases to be accepted: at exp, or before when its issuer's
	// tokens may not be that old; the skew of clocks is added.
	Until time.Time

	all map[string]any
}

// newClaims reads the registered claims.
func newClaims(all map[string]any) (*Claims, error) {
	c := &Claims{all: all, Audiences: values(all["aud"])}
	c.Issuer, _ = all["iss"].(string)
	c.Subject, _ = all["sub"].(string)
	if c.Issuer == "" || c.Subject == "" {
		return nil, invalidf("it has no iss or no sub")
	}
	for name, at := range map[string]*time.Time{"exp": &c.Expires, "iat": &c.IssuedAt, "nbf": &c.NotBefore} {
		value, has := all[name]
		seconds, numeric := value.(float64)
		switch {
		case !has && name == "nbf":
			continue
		case !has:
			return nil, invalidf("it has no %s", name)
		case !numeric || seconds < 0 || seconds > maxSeconds:
			return nil, invalidf("its %s is not a time", name)
		}
		whole, part := math.Modf(seconds)
		*at = time.Unix(int64(whole), int64(part*float64(time.Second)))
	}
	return c, nil
}

// maxSeconds is the greatest time that is read, in the year 9999.
const maxSeconds = 253402300799

// Values returns the values of a claim: a string, a number or a boolean is one, an array
// as many as it has. The scopes of OAuth, which are one string (RFC 8693, section 4.2),
// are as many. The claim is the member of a name or, if that begins with a slash, the
// value that a JSON pointer (RFC 6901) finds. Objects have no values.
func (c *Claims) Values(claim string) []string {
	if claim == "scope" {
		text, _ := c.all[claim].(string)
		return strings.Fields(text)
	}
	path, pointer := strings.CutPrefix(claim, "/")
	if !pointer {
		return values(c.all[claim])
	}
	var at any = c.all
	for name := range strings.SplitSeq(path, "/") {
		object, _ := at.(map[string]any)
		at = object[unescape.Replace(name)]
	}
	return values(at)
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

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
