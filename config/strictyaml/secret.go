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

// redacted stands for a secret value in everything printed.
const redacted = "[redacted]"

// A Secret is a value that is not written in the configuration but referred to: {env: NAME} or {file: PATH}. It holds the reference
// after decoding, and the value too after [Secret.Resolve].
//
// No way of printing a Secret shows its value: fmt verbs, slog, JSON, YAML and text all show the reference. Text in the form of a
// pasted key is refused as a reference, so that showing it is safe. The zero value refers to nothing.
//
// A field with `yaml:"name,plain"` also takes a URL without a password as it is; such a value is shown.
type Secret struct {
	env, file string
	// text is the value of a plain secret, which is shown.
	text string
	// A pointer, since fmt prints the fields of unexported struct fields without asking methods, but never follows inner pointers.
	value *string
}

// NewSecret returns a resolved secret that refers to nothing, for configurations made in code.
func NewSecret(value string) Secret { return Secret{value: &value} }

// IsZero reports that the secret neither refers to anything nor has a value.
func (s Secret) IsZero() bool { return s == Secret{} }

// Resolve looks the value up: in the environment by env, such as [os.LookupEnv], or in a file by readFile, such as [os.ReadFile], less
// one line end at the file's end. A value that is missing or blank is an error, which names the reference only, and leaves the secret
// as it was. The zero value and secrets that refer to nothing resolve to themselves.
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

// IsCurrent reports whether the secret has the value that its reference leads to now, see [Secret.Resolve].
func (s Secret) IsCurrent(env func(string) (string, bool), readFile func(string) ([]byte, error)) bool {
	now := s
	return now.Resolve(env, readFile) == nil && s.Resolved() && now.Reveal() == s.Reveal()
}

// Resolved reports whether the secret has a value.
func (s Secret) Resolved() bool { return s.value != nil }

// Reveal returns the value, and the empty string when the secret is not resolved. Its callers hand the value to whom it is for.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Reference returns the source of the secret: the name of an environment variable, the path of a file, or neither.
func (s Secret) Reference() (env, file string) { return s.env, s.file }

// Source describes the reference: "environment variable NAME", "file PATH", or the empty string.
func (s Secret) Source() string {
	switch {
	case s.env != "":
		return "environment variable " + s.env
	case s.file != "":
		return "file " + s.file
	}
	return ""
}

// Equal reports whether both refer to the same and have the same value, in time that does not depend on the value.
func (s Secret) Equal(o Secret) bool {
	same := subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(o.Reveal())) == 1
	return same && s.env == o.env && s.file == o.file && s.text == o.text && s.Resolved() == o.Resolved()
}

// String returns the reference as it is written in configuration, or a fixed string.
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

// GoString is String, for %#v.
func (s Secret) GoString() string { return "strictyaml.Secret" + s.String() }

// Format prints String for every verb: without it, %d and %x would look inside.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = f.Write([]byte(text)) // fmt.State's writer keeps its own error
}

// LogValue is String, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for map keys and everything that knows strings only.
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

// Patterns of references. A key pasted by mistake where a name belongs has lower-case letters or no slash: it is refused, unprinted.
const (
	envPattern  = `^[A-Z_][A-Z0-9_]*$`
	filePattern = `/`
)

var (
	envName  = regexp.MustCompile(envPattern)
	filePath = regexp.MustCompile(filePattern)
)

// secret decodes a reference. No fault repeats the written value.
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
			d.fault(n, path, "begin it with a scheme, as in redis://HOST:6379, or write "+secretForm, "is not a URL")
			return
		case pl.plain:
			what = "a URL with a user or password"
		}
		d.fault(n, path, "write "+secretForm, "%s is not written here: the file is read, copied and logged by others", what)
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
				d.fault(value, fault.Key(path, "env"), "capital letters, digits and underscores", "is not the name of an environment variable")
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

// secretForm is how a reference is written.
const secretForm = "{env: NAME} or {file: PATH}" //nolint:gosec // how a secret is referred to

// holdsPassword reports whether a URL has a user, who may be a token, or a password in a parameter. Text that is no URL may be a password.
func holdsPassword(text string) bool {
	_, rest, isURL := strings.Cut(text, "://")
	authority, query := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, query = rest[:i], rest[i:]
	}
	return !isURL || strings.Contains(authority, "@") || strings.Contains(strings.ToLower(query), "password")
}
