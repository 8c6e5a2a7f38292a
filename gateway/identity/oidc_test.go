package identity_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/issuer"
)

// start is the time of every clock.
var start = time.Date(2026, 11, 21, 10, 0, 20, 0, time.UTC)

// clock is one that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a verifier of one issuer.
type world struct {
	*issuer.Issuer
	clock    *clock
	keys     *identity.IssuerKeys
	verifier *identity.Verifier
}

func newWorld(t *testing.T, change func(*identity.TokenIssuer)) *world {
	t.Helper()
	w := &world{Issuer: issuer.RunT(t), clock: &clock{now: start}}
	w.keys = identity.NewIssuerKeys(w.clock.Now, slog.New(slog.DiscardHandler))
	cfg := identity.TokenIssuer{URL: w.URL, Audiences: []string{"tollgate"}}
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	w.verifier = identity.NewVerifier([]identity.TokenIssuer{cfg}, w.keys)
	return w
}

// claims are those of a token that is accepted, with others instead; nil removes one.
func claims(others issuer.Claims) issuer.Claims {
	c := issuer.Claims{"sub": "ann", "aud": "tollgate", "iat": start.Unix(), "exp": start.Add(time.Hour).Unix()}
	maps.Copy(c, others)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// expect verifies a token: want is part of the error, "" for none.
func (w *world) expect(t *testing.T, what, token, want string) {
	t.Helper()
	_, err := w.verifier.Verify(t.Context(), token)
	got := fmt.Sprint(err)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(got, want)) {
		t.Errorf("%s: %s, want %q", what, got, want)
	}
	if err != nil && len(token) > 40 && strings.Contains(got, token[len(token)-40:]) {
		t.Errorf("%s: the error has the signature: %s", what, got)
	}
}

func TestAccepts(t *testing.T) {
	for _, algorithm := range []string{"RS256", "PS256", "ES256", "EdDSA"} {
		w := newWorld(t, nil)
		w.Rotate(t, algorithm)
		got, err := w.verifier.Verify(t.Context(), w.Token(t, claims(issuer.Claims{"aud": []string{"other", "tollgate"}, "nbf": start.Unix()})))
		if err != nil {
			t.Errorf("%s: %v", algorithm, err)
			continue
		}
		if got.Issuer != w.URL || got.Subject != "ann" || !got.Expires.Equal(start.Add(time.Hour)) || !got.Until.Equal(start.Add(time.Hour+30*time.Second)) {
			t.Errorf("%s: claims = %+v, want those of the token", algorithm, got)
		}
	}
}

func TestRefuses(t *testing.T) {
	w := newWorld(t, nil)
	key, stranger := w.Key(), issuer.NewKey(t, "ES256")
	rsa := issuer.NewKey(t, "RS256")
	w.Publish(key, rsa)
	ours := claims(issuer.Claims{"iss": w.URL})
	with := func(name string, value any) issuer.Claims { return claims(issuer.Claims{"iss": w.URL, name: value}) }
	good := key.Sign(t, nil, ours)
	none := issuer.Key{Algorithm: "none", ID: key.ID}
	for what, c := range map[string]struct{ token, want string }{
		"a good one":                         {good, ""},
		"none":                               {none.Sign(t, nil, ours), `algorithm "none" is not accepted`},
		"NONE":                               {none.Sign(t, issuer.Claims{"alg": "NONE"}, ours), `algorithm "NONE" is not accepted`},
		"HMAC with the public key":           {rsa.Confuse(t, ours), `algorithm "HS256" is not accepted`},
		"an algorithm that was not allowed":  {rsa.Sign(t, issuer.Claims{"alg": "RS512"}, ours), `algorithm "RS512" is not accepted`},
		"an algorithm of another key":        {rsa.Sign(t, issuer.Claims{"alg": "PS256"}, ours), "unknown key"},
		"an algorithm the key is not for":    {key.Sign(t, issuer.Claims{"alg": "RS256"}, ours), "unknown key"},
		"another signer with the same kid":   {stranger.Sign(t, issuer.Claims{"kid": key.ID}, ours), "wrong signature"},
		"a key that it brings":               {stranger.Sign(t, issuer.Claims{"kid": key.ID, "jwk": stranger.JWK()}, ours), "wrong signature"},
		"a key at an address that it brings": {stranger.Sign(t, issuer.Claims{"jku": w.URL + "/jwks", "x5u": w.URL + "/jwks"}, ours), "unknown key"},
		"a kid that is a path":               {stranger.Sign(t, issuer.Claims{"kid": "../../dev/null"}, ours), "unknown key"},
		"a kid that is none":                 {key.SignText(t, `{"alg":"ES256","kid":7}`, `{}`), "invalid header"},
		"two algorithms":                     {key.SignText(t, `{"alg":"ES256","alg":"none"}`, `{}`), "invalid header"},
		"two subjects":                       {key.SignText(t, `{"alg":"ES256"}`, `{"sub":"ann","sub":"bob"}`), "invalid claims"},
		"claims that are a list":             {key.SignText(t, `{"alg":"ES256"}`, `[]`), "invalid claims"},
		"critical headers":                   {key.Sign(t, issuer.Claims{"crit": []string{"b64"}, "b64": false}, ours), "the header crit"},
		"a payload that is not encoded":      {key.Sign(t, issuer.Claims{"b64": false}, ours), "wrong signature"},
		"a token that ends a session":        {key.Sign(t, issuer.Claims{"typ": "logout+jwt"}, ours), "not an access token"},
		"a changed payload":                  {moved(good, key.Sign(t, nil, with("sub", "bob"))), "wrong signature"},
		"no signature":                       {good[:strings.LastIndex(good, ".")+1], "wrong signature"},
		"another spelling of the signature":  {good[:len(good)-1] + string(good[len(good)-1]+1), "invalid signature"},
		"another issuer":                     {key.Sign(t, nil, with("iss", "https://elsewhere.example")), "is not configured"},
		"an issuer with a slash":             {key.Sign(t, nil, with("iss", w.URL+"/")), "is not configured"},
		"no issuer":                          {key.Sign(t, nil, with("iss", nil)), "missing iss"},
		"no subject":                         {key.Sign(t, nil, with("sub", nil)), "missing iss or sub"},
		"a subject that is a number":         {key.Sign(t, nil, with("sub", 7)), "missing iss or sub"},
		"another audience":                   {key.Sign(t, nil, with("aud", "billing")), "wrong audience"},
		"an audience that begins like ours":  {key.Sign(t, nil, with("aud", "tollgate2")), "wrong audience"},
		"no audience":                        {key.Sign(t, nil, with("aud", nil)), "wrong audience"},
		"no end":                             {key.Sign(t, nil, with("exp", nil)), "missing exp"},
		"an end that is a string":            {key.Sign(t, nil, with("exp", "2030-01-01")), "exp is not a time"},
		"an end beyond all calendars":        {key.Sign(t, nil, with("exp", 1e300)), "exp is not a time"},
		"an end in the past":                 {key.Sign(t, nil, with("exp", start.Add(-31*time.Second).Unix())), "expired"},
		"an end within the skew":             {key.Sign(t, nil, with("exp", start.Add(-29*time.Second).Unix())), ""},
		"no beginning":                       {key.Sign(t, nil, with("iat", nil)), "missing iat"},
		"issued in the future":               {key.Sign(t, nil, with("iat", start.Add(31*time.Second).Unix())), "not valid yet"},
		"issued within the skew":             {key.Sign(t, nil, with("iat", start.Add(29*time.Second).Unix())), ""},
		"issued too long ago":                {key.Sign(t, nil, with("iat", start.Add(-25*time.Hour).Unix())), "issued more than 24h"},
		"not before the future":              {key.Sign(t, nil, with("nbf", start.Add(31*time.Second).Unix())), "not valid yet"},
		"bound to a key of the holder":       {key.Sign(t, nil, with("cnf", map[string]string{"jkt": "x"})), "bound to a key"},
		"more than there may be":             {key.Sign(t, nil, with("pad", strings.Repeat("x", identity.MaxToken))), "longer than 8192 bytes"},
		"no token":                           {"hello", "parts"},
		"five parts":                         {"a.b.c.d.e", "parts"},
	} {
		w.expect(t, what, c.token, c.want)
	}
}

// moved returns the claims of another token under the signature of a token.
func moved(token, other string) string {
	return other[:strings.LastIndex(other, ".")] + token[strings.LastIndex(token, "."):]
}

// A token without kid is signed with the one key that fits, if there is one.
func TestTokensWithoutKeyID(t *testing.T) {
	w := newWorld(t, nil)
	key, other := w.Key(), issuer.NewKey(t, "RS256")
	w.Publish(key, other)
	token := key.Sign(t, issuer.Claims{"kid": nil}, claims(issuer.Claims{"iss": w.URL}))
	w.expect(t, "one key fits", token, "")
	w.Publish(key, issuer.NewKey(t, "ES256"))
	w.clock.advance(15 * time.Minute)
	w.keys.Refresh(t.Context())
	w.expect(t, "two keys fit", token, "unknown key")
}

// Keys of other uses and types do not keep those that verify from being read.
func TestKeySets(t *testing.T) {
	w := newWorld(t, nil)
	key := w.Key().JWK()
	for what, c := range map[string]struct{ change, value, want string }{
		"as it is":          {"", "", ""},
		"for encryption":    {"use", "enc", "does not contain a supported signature key"},
		"of a type unknown": {"kty", "XYZ", "does not contain a supported signature key"},
		"symmetric":         {"kty", "oct", "does not contain a supported signature key"},
		"another algorithm": {"alg", "ES384", "does not contain a supported signature key"},
		"off the curve":     {"y", key["x"], "does not contain a supported signature key"},
	} {
		altered := maps.Clone(key)
		if c.change != "" {
			altered[c.change] = c.value
		}
		w.Handle("/jwks", func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(rw, `{"keys":[{"kty":"XYZ"},{"kty":"oct","k":"AAAA"},%s]}`, object(altered))
		})
		v := identity.NewVerifier([]identity.TokenIssuer{{URL: w.URL, Audiences: []string{"tollgate"}}}, identity.NewIssuerKeys(w.clock.Now, slog.New(slog.DiscardHandler)))
		_, err := v.Verify(t.Context(), w.Token(t, claims(nil)))
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("a key %s: %s, want %q", what, got, c.want)
		}
	}
}

func object(members map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, fmt.Sprintf("%q:%q", name, members[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// A new key is fetched when a token has it; a withdrawn one goes with the next reading.
func TestRotation(t *testing.T) {
	w := newWorld(t, nil)
	old := w.Key()
	first := w.Token(t, claims(nil))
	w.expect(t, "the first key", first, "")
	w.Rotate(t, "RS256", old)
	second := w.Token(t, claims(nil))
	w.expect(t, "the second key, at once", second, "unknown key")
	w.clock.advance(10 * time.Second)
	w.expect(t, "the second key, later", second, "")
	w.expect(t, "the first key during the rotation", first, "")
	w.Publish(w.Key())
	w.expect(t, "the first key, withdrawn", first, "")
	w.clock.advance(15 * time.Minute)
	w.keys.Refresh(t.Context())
	w.expect(t, "the first key, withdrawn and read", first, "unknown key")
	w.expect(t, "the second key at the end", second, "")
}

// Tokens with unknown keys, however many come at once, have the issuer asked once.
func TestUnknownKeysAreAskedForSeldom(t *testing.T) {
	w := newWorld(t, nil)
	token := w.Token(t, claims(nil))
	flood := func() {
		var all sync.WaitGroup
		for range 50 {
			stranger := issuer.NewKey(t, "ES256").Sign(t, nil, claims(issuer.Claims{"iss": w.URL}))
			all.Go(func() {
				if _, err := w.verifier.Verify(t.Context(), stranger); !errors.Is(err, identity.ErrInvalid) {
					t.Errorf("a stranger's: %v, want ErrInvalid", err)
				}
			})
		}
		all.Wait()
	}
	for want := 1; want <= 3; want++ {
		flood()
		if got := w.Asked("/jwks"); got != want {
			t.Errorf("after flood %d the issuer was asked %d times", want, got)
		}
		w.expect(t, "the issuer's own", token, "")
		w.clock.advance(10 * time.Second)
	}
}

// An issuer that is away: known keys go on, unknown ones are not called invalid, and what
// was known survives another configuration.
func TestIssuerAway(t *testing.T) {
	w := newWorld(t, nil)
	token := w.Token(t, claims(nil))
	w.Down(true)
	if _, err := w.verifier.Verify(t.Context(), token); !errors.Is(err, identity.ErrIssuerUnavailable) {
		t.Errorf("before the keys were ever read: %v, want ErrUnavailable", err)
	}
	w.Down(false)
	w.clock.advance(10 * time.Second)
	w.expect(t, "after it came back", token, "")
	w.Down(true)
	w.clock.advance(15 * time.Minute)
	w.keys.Refresh(t.Context())
	w.expect(t, "a known key", token, "")
	w.Rotate(t, "ES256")
	fresh := w.Token(t, claims(nil))
	if _, err := w.verifier.Verify(t.Context(), fresh); !errors.Is(err, identity.ErrIssuerUnavailable) {
		t.Errorf("a new key: %v, want ErrUnavailable", err)
	}
	if s := w.keys.Status(); len(s) != 1 || s[0].Err == nil || !s[0].Fetched.Equal(start.Add(10*time.Second)) {
		t.Errorf("status = %+v, want one failure since %s", s, start.Add(10*time.Second))
	}
	again := identity.NewVerifier([]identity.TokenIssuer{{URL: w.URL, Audiences: []string{"tollgate", "more"}}}, w.keys)
	w.keys.Retain(again)
	if _, err := again.Verify(t.Context(), token); err != nil {
		t.Errorf("a known key under another configuration: %v", err)
	}
	w.keys.Retain()
	if s := w.keys.Status(); len(s) != 0 {
		t.Errorf("status of keys that none uses = %+v", s)
	}
}

// The results that an issuer's answers may lead to.
func TestDiscovery(t *testing.T) {
	elsewhere := issuer.RunT(t)
	for what, c := range map[string]struct {
		path    string
		handler http.HandlerFunc
		want    string
	}{
		"a document of another issuer": {"/.well-known/openid-configuration", says(`{"issuer":"https://elsewhere.example","jwks_uri":"https://elsewhere.example/jwks"}`), "names a different issuer"},
		"keys at a private address":    {"/.well-known/openid-configuration", says(`{"issuer":"ISSUER","jwks_uri":"https://10.0.0.1/jwks"}`), "prohibited"},
		"keys in the clear":            {"/.well-known/openid-configuration", says(`{"issuer":"ISSUER","jwks_uri":"http://elsewhere.example/jwks"}`), "must be https"},
		"keys in a file":               {"/.well-known/openid-configuration", says(`{"issuer":"ISSUER","jwks_uri":"file:///etc/passwd"}`), "must be"},
		"a redirect": {"/jwks", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/jwks", http.StatusFound)
		}, "status 302"},
		"an answer without end":          {"/jwks", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, "exceeds 1048576 bytes"},
		"no keys":                        {"/jwks", says(`{"keys":[]}`), "does not contain a supported signature key"},
		"something else":                 {"/jwks", says(`<html>`), "must return a JSON Web Key Set"},
		"a document that cannot be read": {"/.well-known/openid-configuration", says(`{"issuer":1}`), "invalid document"},
	} {
		w := newWorld(t, nil)
		w.Handle(c.path, func(rw http.ResponseWriter, r *http.Request) {
			c.handler(&replacing{rw, w.URL}, r)
		})
		w.expect(t, what, w.Token(t, claims(nil)), c.want)
		if s := w.keys.Status(); s[0].Err == nil {
			t.Errorf("%s: the status has no error", what)
		}
	}
	if n := elsewhere.Asked("/jwks"); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// replacing writes the issuer's URL where an answer has ISSUER.
type replacing struct {
	http.ResponseWriter
	url string
}

func (r *replacing) Write(p []byte) (int, error) {
	_, err := r.ResponseWriter.Write([]byte(strings.ReplaceAll(string(p), "ISSUER", r.url)))
	return len(p), err
}

// Keys can be where the configuration says, without discovery.
func TestConfiguredKeys(t *testing.T) {
	keys := issuer.RunT(t)
	w := newWorld(t, func(c *identity.TokenIssuer) { c.URL, c.JWKS = "https://id.invalid", keys.URL+"/jwks" })
	w.expect(t, "keys elsewhere", keys.Token(t, claims(issuer.Claims{"iss": "https://id.invalid"})), "")
	if n := keys.Asked("/.well-known/openid-configuration"); n != 0 {
		t.Errorf("discovery was asked %d times", n)
	}
}

func TestValues(t *testing.T) {
	w := newWorld(t, nil)
	c, err := w.verifier.Verify(t.Context(), w.Token(t, claims(issuer.Claims{
		"groups": []any{"a", "b", 3, []string{"nested"}}, "scope": "read  write", "verified": true, "n": 12345678901,
		"https://x.example/team": "ml", "realm": issuer.Claims{"roles": []string{"r"}, "a/b": "slash"},
	})))
	if err != nil {
		t.Fatal(err)
	}
	for claim, want := range map[string][]string{
		"groups": {"a", "b", "3"}, "scope": {"read", "write"}, "verified": {"true"}, "n": {"12345678901"},
		"https://x.example/team": {"ml"}, "/realm/roles": {"r"}, "/realm/a~1b": {"slash"}, "realm": nil, "absent": nil, "/sub/x": nil,
	} {
		if diff := cmp.Diff(want, c.Values(claim)); diff != "" {
			t.Errorf("Values(%q) (-want +got):\n%s", claim, diff)
		}
	}
}

// Claims that were accepted hold as long as a token of them would.
func TestAnIssuerHolds(t *testing.T) {
	w := newWorld(t, func(c *identity.TokenIssuer) { c.MaxAge = 10 * time.Minute })
	c, err := w.verifier.Verify(t.Context(), w.Token(t, claims(nil)))
	if err != nil {
		t.Fatal(err)
	}
	if want := start.Add(10*time.Minute + 30*time.Second); !c.Until.Equal(want) {
		t.Errorf("until = %s, want %s", c.Until, want)
	}
	other := identity.NewVerifier([]identity.TokenIssuer{{URL: w.URL, Audiences: []string{"else"}}}, w.keys)
	for what, got := range map[string]bool{
		"now":                     w.verifier.StillAccepts(c, start),
		"at its end":              !w.verifier.StillAccepts(c, c.Until),
		"for another audience":    !other.StillAccepts(c, start),
		"without its issuer":      !identity.NewVerifier(nil, w.keys).StillAccepts(c, start),
		"just before it gets old": w.verifier.StillAccepts(c, c.Until.Add(-time.Second)),
	} {
		if !got {
			t.Errorf("Holds %s is wrong", what)
		}
	}
}

func TestLooks(t *testing.T) {
	w := newWorld(t, nil)
	token := w.Token(t, claims(nil))
	for credential, want := range map[string]bool{
		token: true, token[:strings.LastIndex(token, ".")+1]: true, "eyJhbGciOiJub25lIn0.e30.": true,
		"": false, "tg_ABC": false, "a.b.c": false, "x" + token: false, token + ".x": false, token + "=": false, "first.last.name": false,
	} {
		if got := identity.IsToken(credential); got != want {
			t.Errorf("Looks(%.30q) = %v, want %v", credential, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  identity.TokenIssuer
		want string
	}{
		{identity.TokenIssuer{URL: "https://id.example/realms/a", Audiences: []string{"x"}}, "<nil>"},
		{identity.TokenIssuer{URL: "http://id.example", Audiences: []string{"x"}}, "url: must be https"},
		{identity.TokenIssuer{URL: "https://id.example?x=1", Audiences: []string{"x"}}, "url: must not have a query"},
		{identity.TokenIssuer{URL: "https://u:p@id.example", Audiences: []string{"x"}}, "url: must be a URL"},
		{identity.TokenIssuer{URL: "https://id.example"}, "audiences: must contain at least one"},
		{identity.TokenIssuer{URL: "https://id.example", Audiences: []string{""}}, "audiences: must contain at least one"},
		{identity.TokenIssuer{URL: "https://id.example", Audiences: []string{"x"}, MaxAge: -1}, "max_age: must not be negative"},
		{identity.TokenIssuer{URL: "https://id.example", Audiences: []string{"x"}, JWKS: "ftp://x"}, "jwks_url: must be https"},
	} {
		if got := fmt.Sprint(c.cfg.Validate()); !strings.Contains(got, c.want) {
			t.Errorf("Validate(%+v) = %s, want %s", c.cfg, got, c.want)
		}
	}
}
