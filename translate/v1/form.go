package v1

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	configfault "github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// kind is the JSON type of a field.
type kind int

const (
	kindString kind = iota
	kindInteger
	kindNumber
	kindBoolean
	kindStrings
	kindEnv
	kindPorts
)

func (k kind) String() string {
	return [...]string{"string", "integer", "number", "boolean", "array of strings", "object", "array of strings"}[k]
}

// field is one member of an input.
type field struct {
	name string
	kind kind
	// v2 lists the field's locations in v2 bodies, including its own name. plain reports that v2 accepts the value
	// unchanged; v2 then is a single location.
	v2    string
	plain bool
	// enum lists the allowed values; an empty string counts as absent.
	enum []string
	// atLeast and atMost are the bounds of an integer; maxLen is the maximum length of a string in characters.
	atLeast, atMost int64
	maxLen          int
	required        bool
	// keepEmpty reports that "" clears the value instead of counting as absent.
	keepEmpty bool
}

// form lists the members of the input of one operation.
type form []field

// input is a validated body. It holds the given members as string, int64, float64, bool, []string or map[string]string,
// without absent and null ones.
type input map[string]any

func (in input) has(name string) bool { _, ok := in[name]; return ok }

func (in input) text(name string) string { s, _ := in[name].(string); return s }

func (in input) flag(name string) bool { b, _ := in[name].(bool); return b }

func (in input) texts(name string) []string { l, _ := in[name].([]string); return l }

// optional returns a member as an Optional.
func optional[T any](in input, name string) legacy.Optional[T] { return legacy.OptionalOf[T](in, name) }

// wantsCPU reports whether the input asks for CPU instances. Without a compute type, only a choice of flavours does.
func (in input) wantsCPU() bool {
	if in.has("computeType") {
		return in.text("computeType") == "CPU"
	}
	return len(in.texts("cpuFlavorIds")) > 0 && len(in.texts("gpuTypeIds")) == 0
}

// whole returns an integer, or absent if it is not set.
func (in input) whole(name string, absent int64) int64 {
	if n, ok := in[name].(int64); ok {
		return n
	}
	return absent
}

// maxProblems is the maximum number of problems in one refusal.
const maxProblems = 20

// maxItems limits lists that may also be a comma-separated string, because the limit on JSON arrays does not apply inside
// a string, and the number of placement candidates of a pod is a product of its lists.
const maxItems = 256

// read validates a body. The checks are in v1's order: object, unknown members, types, required members, values.
func (f form) read(in *translate.Incoming) (input, *fault) {
	body, ok := in.Body.(map[string]any)
	if !ok || !in.HasBody {
		return nil, bad(textNotObject)
	}
	if problems := f.extra(body); len(problems) > 0 {
		return nil, &fault{status: http.StatusBadRequest, text: textExtraKeys, problems: problems}
	}
	out := make(input, len(body))
	for _, field := range f {
		value := body[field.name]
		if value == nil {
			continue
		}
		object, _ := value.(map[string]any)
		unset := len(object) == 0 && translate.IsBlank(value)
		value, ok := field.convert(value)
		if !ok && unset {
			continue
		}
		if !ok && object != nil && field.kind == kindEnv {
			_, err := translate.Env(object)
			return nil, bad("%s: %v", field.name, err)
		}
		if !ok {
			return nil, bad("%s: expected %s", field.name, field.kind)
		}
		if list, isList := value.([]string); isList && field.splits() && len(list) > maxItems {
			return nil, bad("%s: must have at most %d items", field.name, maxItems)
		}
		if value == "" && !field.keepEmpty {
			continue
		}
		out[field.name] = value
	}
	for _, field := range f {
		if field.required && !out.has(field.name) {
			return nil, bad("missing required key: '%s'", field.name)
		}
		if fault := field.check(out[field.name]); fault != nil {
			return nil, fault
		}
	}
	return out, nil
}

// plain returns the values that v2 accepts unchanged.
func (f form) plain(in input) legacy.PassThrough {
	p := legacy.PassThrough{}
	for _, field := range f {
		if value, given := in[field.name]; given && field.plain {
			p.Set(cmp.Or(field.v2, field.name), value)
		}
	}
	return p
}

func (f form) extra(body map[string]any) []string {
	var unknown, problems []string
	for key, value := range body {
		if !translate.IsBlank(value) && !slices.ContainsFunc(f, func(field field) bool { return field.name == key }) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	names := make([]string, len(f))
	for i, field := range f {
		names[i] = field.name
	}
	for _, key := range unknown[:min(len(unknown), maxProblems)] {
		problem := "key provided in request body which is not in input schema: '" + translate.Clip(key, 64) + "'"
		if near := configfault.Nearest(key, names); near != "" {
			problem += ", did you mean '" + near + "'?"
		}
		problems = append(problems, problem)
	}
	return problems
}

// convert converts a JSON value to the field's type. An integral number counts as an integer in any spelling. Lists may
// be a comma-separated string, as old clients send them.
func (f field) convert(v any) (any, bool) {
	switch f.kind {
	case kindString:
		s, ok := v.(string)
		return s, ok
	case kindInteger:
		n, ok := translate.Integer(v)
		return n, ok
	case kindNumber:
		n, ok := translate.Number(v)
		return n, ok
	case kindBoolean:
		b, ok := v.(bool)
		return b, ok
	case kindEnv:
		m, err := translate.Env(v)
		return m, err == nil
	case kindPorts:
		l, err := translate.Ports(v)
		return l, err == nil
	case kindStrings:
		return f.list(v)
	}
	return nil, false
}

// list converts a list of strings. Only lists of ids may also be one comma-separated string; elsewhere, commas are part
// of a value.
func (f field) list(v any) (any, bool) {
	if s, ok := v.(string); ok {
		return translate.SplitList(s), f.splits()
	}
	items, ok := v.([]any)
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, isText := item.(string)
		ok = ok && isText
		out = append(out, s)
	}
	return out, ok
}

// splitLists names the lists that clients also send as a comma-separated string.
var splitLists = map[string]bool{
	"gpuTypeIds": true, "dataCenterIds": true, "cpuFlavorIds": true, "countryCodes": true,
	"networkVolumeIds": true,
}

// splits reports whether a list may be a comma-separated string.
func (f field) splits() bool { return f.kind == kindPorts || splitLists[f.name] }

// check validates a given value against the field's bounds.
func (f field) check(v any) *fault {
	switch v := v.(type) {
	case string:
		if len(f.enum) > 0 && !slices.Contains(f.enum, v) {
			return bad("%s: must be one of %s", f.name, strings.Join(f.enum, ", "))
		}
		if f.maxLen > 0 && utf8.RuneCountInString(v) > f.maxLen {
			return bad("%s: must be at most %d characters", f.name, f.maxLen)
		}
	case int64:
		if v < f.atLeast {
			return bad("%s: must be at least %d", f.name, f.atLeast)
		}
		if f.atMost > 0 && v > f.atMost {
			return bad("%s: must be at most %d", f.name, f.atMost)
		}
	}
	return nil
}

// query reads the query parameters of one request. As v1 did, it accepts lists both repeated and comma-separated, and
// ignores unknown names.
type query struct {
	values map[string][]string
	fault  *fault // the first invalid value
}

func (q *query) fail(format string, args ...any) {
	if q.fault == nil {
		q.fault = bad(format, args...)
	}
}

// text returns the parameter, or "" if it is absent, which means no filter.
func (q *query) text(name string, enum ...string) string {
	values := q.values[name]
	if len(values) == 0 || values[0] == "" {
		return ""
	}
	if len(enum) > 0 && !slices.Contains(enum, values[0]) {
		q.fail("%s: must be one of %s", name, strings.Join(enum, ", "))
	}
	return values[0]
}

func (q *query) texts(name string) []string {
	var all []string
	for _, value := range q.values[name] {
		all = append(all, translate.SplitList(value)...)
	}
	if len(all) > maxItems {
		q.fail("%s: must have at most %d items", name, maxItems)
		return nil
	}
	return all
}

func (q *query) flag(name string) bool {
	switch s := q.text(name); s {
	case "true", "1":
		return true
	case "false", "0", "":
		return false
	default:
		q.fail("%s: expected boolean, got %s", name, strconv.Quote(fmt.Sprintf("%.20s", s)))
		return false
	}
}
