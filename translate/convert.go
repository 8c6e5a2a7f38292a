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

// Env reads an environment object: values become strings ("true", "1", "1.5"),
// null becomes "". A nested value or anything but an object is an error.
func Env(v any) (map[string]string, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("expected object")
	}
	env := make(map[string]string, len(object))
	for key := range object {
		if env[key], ok = Variable(object, key); !ok {
			return nil, fmt.Errorf("%q: expected string", Clip(key, 64))
		}
	}
	return env, nil
}

// Variable returns a variable of an environment as Env does; ok is false for a nested
// value.
func Variable(env any, name string) (value string, ok bool) {
	if r, isRecord := env.(Record); isRecord {
		if value = r.Text(name); value != "" { // as a value it would be an allocation
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

// EnvObject is the JSON form of an environment; nil becomes an empty object.
func EnvObject(env map[string]string) map[string]any {
	object := make(map[string]any, len(env))
	for key, value := range env {
		object[key] = value
	}
	return object
}

// SplitList splits a comma separated list, trims the elements and leaves empty
// ones out. An empty text is an empty list, not nil.
func SplitList(s string) []string {
	parts := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// Ports reads "<port>/<protocol>" entries from an array or a comma separated
// text. Order is kept and no protocol is invented.
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

// LegacyTime is how the retired interfaces get their times: RFC 3339 in UTC
// with milliseconds and "Z".
const LegacyTime = "2006-01-02T15:04:05.000Z"

// ScriptTime is the text a JavaScript Date prints, shown to people only.
const ScriptTime = "Mon Jan 02 2006 15:04:05 GMT+0000 (Coordinated Universal Time)"

// FormatTime rewrites an RFC 3339 time in UTC with the layout. Anything else
// comes back as it is: a strange time is better than none.
func FormatTime(s, layout string) string {
	if layout == LegacyTime && spelledLike(s, LegacyTime) {
		return s // whether or not it is a time
	}
	return string(AppendTime(nil, s, layout))
}

// AppendTime appends FormatTime.
func AppendTime(buf []byte, s, layout string) []byte {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || layout == LegacyTime && spelledLike(s, LegacyTime) {
		return append(buf, s...)
	}
	const seconds = "2006-01-02T15:04:05"
	if layout == ScriptTime && strings.HasSuffix(s, "Z") && spelledLike(s[:min(len(s), len(seconds))], seconds) {
		for _, part := range [...]string{
			t.Weekday().String()[:3], " ", t.Month().String()[:3], " ", s[8:10], " ", s[:4], " ", s[11:19], ScriptTime[len("Mon Jan 02 2006 15:04:05"):],
		} {
			buf = append(buf, part...)
		}
		return buf
	}
	return t.UTC().AppendFormat(buf, layout)
}

// spelledLike reports whether a string has digits where the other one has them, and is the
// same elsewhere.
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

// Location is the country text of a data centre id ("US-TX-3" is "US",
// "EU-RO-1" is "RO"), "" when the id does not tell. For display only: placement
// asks the catalog.
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

// UserID is the stable stand-in for the user id v2 no longer tells: "user_" and
// 26 lower-case base32 characters derived from the account.
func UserID(account string) string {
	sum := sha256.Sum256([]byte("user\x00" + account))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return "user_" + strings.ToLower(text[:26])
}

// PowerOfTwo is the smallest power of two that is at least n and at least 2,
// the vCPU counts v2 allows. It is 0 when n is beyond every machine (2^20).
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

// CUDA is a CUDA version, compared number by number.
type CUDA struct{ Major, Minor int }

// ParseCUDA reads "<major>.<minor>", the only form v2 bodies take.
func ParseCUDA(s string) (CUDA, bool) {
	major, minor, ok := strings.Cut(s, ".")
	a, okA := digits(major)
	b, okB := digits(minor)
	return CUDA{a, b}, ok && okA && okB
}

// Compare orders versions numerically, so 12.11 is above 12.2.
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

// AtLeastCUDA keeps the versions that are at or above the floor. v2 refuses a
// body with both a list and a floor, so a caller who gave both sends the result.
func AtLeastCUDA(versions []string, floor string) []string {
	limit, ok := ParseCUDA(floor)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(versions), func(s string) bool {
		v, ok := ParseCUDA(s)
		return !ok || v.Compare(limit) < 0
	})
}

// Clip shortens a string of the caller's for use in a message.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
