package strictyaml

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// redacted is printed instead of the value of a secret.
const redacted = "[redacted]"

// A Secret is a setting whose value is stored outside of the configuration. The configuration contains a reference to the value, {env:
// NAME} or {file: PATH}. A decoded Secret holds the reference; [Secret.Resolve] adds the value.
//
// Printing a Secret never shows its value: fmt verbs, slog, JSON, YAML and text show the reference. The decoder refuses a reference that
// looks like a pasted key, so that it is safe to show references. The zero Secret has no reference and no value.
//
// A field with the tag `yaml:"name,plain"` also accepts a URL without a password in place of a reference. Such a URL is shown.
type Secret struct {
	env, file string
	// text is the value of a field with the tag option "plain". It may be shown.
	text string
	// value is a pointer because fmt prints unexported fields without calling their methods, but does not follow pointers in them.
	value *string
}

// NewSecret returns a resolved secret without a reference, for configurations built in code.
func NewSecret(value string) Secret { return Secret{value: &value} }

// IsZero reports whether the secret has neither a reference nor a value.
func (s Secret) IsZero() bool { return s == Secret{} }

// Resolve reads the value from an environment variable with env, for example [os.LookupEnv], or from a file with readFile, for example
// [os.ReadFile]. It removes one line break at the end of a file. If the value is missing or blank, Resolve returns an error, which contains
// the reference, and does not change the secret. Resolve does nothing if the secret has no reference.
func (s *Secret) Resolve(env func(string) (string, bool), readFile func(string) ([]byte, error)) error {
	value := ""
	switch {
	case s.env != "":
		v, ok := env(s.env)
		if !ok {
			return fmt.Errorf("environment variable %s is not set", s.env)
		}
		value = v
	case s.file != "":
		data, err := readFile(s.file)
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", s.file, err)
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	default:
		return nil
	}
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("%s is empty", s.Source())
	}
	s.value = &value
	return nil
}

// CheckCurrent returns an error if [Secret.Resolve] would not set the same value again.
func (s Secret) CheckCurrent(env func(string) (string, bool), readFile func(string) ([]byte, error)) error {
	if s.env == "" && s.file == "" {
		return nil
	}
	now := s
	if err := now.Resolve(env, readFile); err != nil || s.Resolved() && now.Reveal() == s.Reveal() {
		return err
	}
	return errors.New("value has changed")
}

// Resolved reports whether the secret has a value.
func (s Secret) Resolved() bool { return s.value != nil }

// Reveal returns the value, or the empty string if the secret is not resolved. Callers must pass the value only to its intended recipient.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Reference returns the name of the environment variable or the path of the file that the secret names. Both are empty if the secret
// has no reference.
func (s Secret) Reference() (env, file string) { return s.env, s.file }

// Source describes the reference as "environment variable NAME" or "file PATH". It returns the empty string without a reference.
func (s Secret) Source() string {
	switch {
	case s.env != "":
		return "environment variable " + s.env
	case s.file != "":
		return "file " + s.file
	}
	return ""
}

// Equal reports whether both secrets have the same reference and the same value. It compares values in constant time.
func (s Secret) Equal(o Secret) bool {
	same := subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(o.Reveal())) == 1
	return same && s.env == o.env && s.file == o.file && s.text == o.text && s.Resolved() == o.Resolved()
}

// String returns {env: NAME} or {file: PATH} if the secret refers to an environment variable or a file. If the configuration contains a URL
// in place of such a reference, String returns the URL. Otherwise it returns "[redacted]" for a secret that has a value, and "{}" for an
// empty secret.
func (s Secret) String() string {
	switch {
	case s.env != "":
		return "{env: " + s.env + "}"
	case s.file != "":
		return "{file: " + s.file + "}"
	case s.text != "":
		return s.text
	case s.value != nil:
		return redacted
	}
	return "{}"
}

// GoString implements fmt.GoStringer, for %#v.
func (s Secret) GoString() string { return "strictyaml.Secret" + s.String() }

// Format implements fmt.Formatter. It prints the result of String for every verb. Without Format, verbs such as %d and %x would print the
// fields.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = f.Write([]byte(text)) // fmt.State stores the error itself
}

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler. It returns the same text as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the reference as an object.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.reference()) }

// MarshalYAML returns the reference as a mapping.
func (s Secret) MarshalYAML() (any, error) { return s.reference(), nil }

func (s Secret) reference() any {
	switch {
	case s.env != "":
		return map[string]string{"env": s.env}
	case s.file != "":
		return map[string]string{"file": s.file}
	case s.text != "":
		return s.text
	case s.value != nil:
		return redacted
	}
	return map[string]string{}
}

// Patterns of names and paths in references. A pasted key does not match, because it contains lower-case letters or no slash. It is
// refused, and the message does not contain it.
const (
	envPattern  = `^[A-Z_][A-Z0-9_]*$`
	filePattern = `/`
)

var (
	envName  = regexp.MustCompile(envPattern)
	filePath = regexp.MustCompile(filePattern)
)

// secret decodes a reference. Its faults do not contain the written value.
func (d *decoder) secret(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	if kindOf(n) == kindString && pl.plain && !holdsPassword(n.Value) {
		text := n.Value
		v.Set(reflect.ValueOf(Secret{text: text, value: &text}))
		return
	}
	if kindOf(n) == kindString {
		what := "a secret"
		switch {
		case pl.plain && !strings.Contains(n.Value, "://"):
			d.fault(n, path, "begin with a scheme, as in redis://HOST:6379, or write "+secretForm, "is not a URL")
			return
		case pl.plain:
			what = "a URL with a user or password"
		}
		d.fault(n, path, "write "+secretForm, "must not contain %s, because others can read, copy and log the file", what)
		return
	}
	if kindOf(n) != kindMapping {
		d.mismatch(n, pl, path)
		return
	}
	var s Secret
	faults := len(d.src.faults)
	for key, value := range entries(n) {
		switch {
		case key.Value == "env" && kindOf(value) == kindString:
			if s.env = value.Value; !envName.MatchString(s.env) {
				d.fault(value, fault.Key(path, "env"), "use capital letters, digits and underscores", "is not a valid name of an environment variable")
			}
		case key.Value == "file" && kindOf(value) == kindString:
			if s.file = value.Value; !filePath.MatchString(s.file) {
				d.fault(value, fault.Key(path, "file"), "write ./NAME for a file in the working directory", "is not a path")
			}
		case key.Value == "env", key.Value == "file":
			d.mismatch(value, &plan{form: formString}, fault.Key(path, key.Value))
		default:
			d.src.fault(placeOf(key), fault.Key(path, key.Value), suggest(key.Value, []string{"env", "file"}), "unknown key")
		}
	}
	if faults == len(d.src.faults) && (s.env == "") == (s.file == "") {
		d.fault(n, path, "", "expected one of %s", secretForm)
	}
	v.Set(reflect.ValueOf(s))
}

// secretForm shows how to write a reference, for messages.
const secretForm = "{env: NAME} or {file: PATH}" //nolint:gosec // the form of a reference, not a secret

// holdsPassword reports whether a URL has user information or a password parameter. Text that is not a URL is assumed to contain a
// password.
func holdsPassword(text string) bool {
	_, rest, isURL := strings.Cut(text, "://")
	authority, query := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, query = rest[:i], rest[i:]
	}
	return !isURL || strings.Contains(authority, "@") || strings.Contains(strings.ToLower(query), "password")
}
