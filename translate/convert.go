package translate

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Env decodes an environment object. Scalar values become strings ("true", "1", "1.5") and null becomes "". Env returns an error for a
// nested value and for a value that is not an object.
func Env(v any) (map[string]string, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("expected object")
	}
	env := make(map[string]string, len(object))
	for key := range object {
		if env[key], ok = Variable(object, key); !ok {
			return nil, fmt.Errorf("%q: expected string, number or boolean", Clip(key, 64))
		}
	}
	return env, nil
}

// Variable returns one variable of an environment, with the conversions of Env. ok is false for a nested value.
func Variable(env any, name string) (value string, ok bool) {
	if r, isRecord := env.(Record); isRecord {
		if value = r.Text(name); value != "" { // a string in an interface would allocate
			return value, true
		}
	}
	switch v := At(env, name).(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	case nil:
		return "", true
	}
	return "", false
}

// EnvObject converts an environment to a JSON object. Nil becomes an empty object.
func EnvObject(env map[string]string) map[string]any {
	object := make(map[string]any, len(env))
	for key, value := range env {
		object[key] = value
	}
	return object
}

// SplitList splits a comma-separated list, trims the elements and drops empty ones. The result is never nil.
func SplitList(s string) []string {
	parts := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// Ports decodes ports in the form "<port>/<protocol>" from an array or a comma-separated string. It keeps their order and adds no protocol.
func Ports(v any) ([]string, error) {
	switch v := v.(type) {
	case string:
		return SplitList(v), nil
	case []any:
		ports := []string{}
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, errors.New("expected array of strings")
			}
			ports = append(ports, SplitList(s)...)
		}
		return ports, nil
	}
	return nil, errors.New("expected array of strings")
}

// LegacyTime is the time layout of the legacy dialects: RFC 3339 in UTC with milliseconds and "Z".
const LegacyTime = "2006-01-02T15:04:05.000Z"

// ScriptTime is the layout of a printed JavaScript Date, used only in text for people.
const ScriptTime = "Mon Jan 02 2006 15:04:05 GMT+0000 (Coordinated Universal Time)"

// FormatTime converts an RFC 3339 time to UTC in the given layout. It returns any other string unchanged, because an odd
// time is more useful than none.
func FormatTime(s, layout string) string {
	if layout == LegacyTime && spelledLike(s, LegacyTime) {
		return s // even if it is not a valid time
	}
	return string(AppendTime(nil, s, layout))
}

// AppendTime appends an RFC 3339 time in UTC and the given layout to buf, or any other string unchanged.
func AppendTime(buf []byte, s, layout string) []byte {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return append(buf, s...)
	}
	return t.UTC().AppendFormat(buf, layout)
}

// spelledLike reports whether s has digits wherever like has them and equals like elsewhere.
func spelledLike(s, like string) bool {
	if len(s) != len(like) {
		return false
	}
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	for i := range len(s) {
		if s[i] != like[i] && (!isDigit(s[i]) || !isDigit(like[i])) {
			return false
		}
	}
	return true
}

// Location returns the country code in a data centre id. For US and CA this is the first part ("US-TX-3" gives "US"), otherwise the second
// part if it has two letters ("EU-RO-1" gives "RO"). Location returns "" if there is neither. Use it for display only; placement queries
// the catalog.
func Location(dataCenterID string) string {
	first, rest, ok := strings.Cut(dataCenterID, "-")
	if ok && (first == "US" || first == "CA") {
		return first
	}
	second, _, ok := strings.Cut(rest, "-")
	if !ok || len(second) != 2 || second != strings.ToUpper(second) {
		return ""
	}
	return second
}

// UserID returns a stable substitute for the user id, because v2 does not expose the real id: "user_" and 26 lower-case base32 characters
// derived from the account.
func UserID(account string) string {
	sum := sha256.Sum256([]byte("user\x00" + account))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return "user_" + strings.ToLower(text[:26])
}

// PowerOfTwo returns the smallest power of two that is at least n and at least 2; v2 accepts only such vCPU counts. It returns 0 if n
// exceeds 2^20.
func PowerOfTwo(n int64) int64 {
	if n > 1<<20 {
		return 0
	}
	p := int64(2)
	for p < n {
		p *= 2
	}
	return p
}

// CUDA is a CUDA version.
type CUDA struct{ Major, Minor int }

// ParseCUDA parses "<major>.<minor>", the only form that v2 accepts in bodies.
func ParseCUDA(s string) (CUDA, bool) {
	major, minor, ok := strings.Cut(s, ".")
	a, okA := digits(major)
	b, okB := digits(minor)
	return CUDA{a, b}, ok && okA && okB
}

// Compare compares versions numerically, so that 12.11 is greater than 12.2.
func (v CUDA) Compare(w CUDA) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

func digits(s string) (int, bool) {
	if s == "" || len(s) > 6 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// AtLeastCUDA returns the versions that are at least minimum. v2 rejects a body with both a list and a minimum, so a list and a minimum
// from a caller are combined into one list.
func AtLeastCUDA(versions []string, minimum string) []string {
	limit, ok := ParseCUDA(minimum)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(versions), func(s string) bool {
		v, ok := ParseCUDA(s)
		return !ok || v.Compare(limit) < 0
	})
}

// Clip truncates a string sent by a caller to at most limit bytes. It appends "..." to a truncated string.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
