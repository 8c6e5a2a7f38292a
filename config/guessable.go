package config

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// minTokenLength is the least number of characters of an admin token.
const minTokenLength = 16

// knownWords are what tokens are made of that nobody chose to be secret, the
// longer ones first where one begins another.
var knownWords = []string{
	"0123456789", "1234567890", "123456789", "12345678", "123456", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnop", "abcdef", "abc123",
	"qwertyuiop", "asdfghjkl", "zxcvbnm", "qwerty",
	"administrator", "changeme", "changeit", "placeholder", "password", "passw0rd", "tollgate", "operator", "example", "letmein", "welcome",
	"default", "replace", "gateway", "change", "please", "secret", "sample", "random", "insert", "passwd", "console",
	"admin", "token", "local", "super", "dummy", "there", "value", "todo", "test", "this", "with", "your", "demo", "root", "user", "pass", "here", "some", "key",
}

// mostGuessable is how many characters beside known words do not yet make a
// token hard to guess.
const mostGuessable = 8

// checkToken refuses an admin token that can be guessed. Faults never show it.
func checkToken(path string, token strictyaml.Secret) error {
	if !token.Resolved() {
		return nil // none, or a fault already
	}
	text := token.Reveal()
	switch {
	case utf8.RuneCountInString(text) < minTokenLength:
		return fault.Errorf(path, "must have at least %d characters; openssl rand -hex 32 makes a good one", minTokenLength)
	case guessable(text):
		return fault.Errorf(path, "must not be made of known words or of repetitions; openssl rand -hex 32 makes a good one")
	}
	return nil
}

// guessable tells whether a text repeats itself from beginning to end, or says
// little beside known words.
func guessable(text string) bool {
	text = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
	letters := []rune(text)
	for period := 1; period <= len(letters)/2; period++ {
		if slices.Equal(letters[period:], letters[:len(letters)-period]) {
			return true
		}
	}
	for _, word := range knownWords {
		text = strings.ReplaceAll(text, word, "")
	}
	return utf8.RuneCountInString(text) < mostGuessable
}
