package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Decode decodes the YAML document data into the struct that into points to. Settings that data omits keep their values in the struct, the
// defaults. The error is an [Errors] with all faults, in which name is the file name. If there is an error, Decode does not change the
// struct. Decode panics if the type of the struct cannot be decoded.
func Decode(name string, data []byte, into any) error {
	_, err := Load(name, data, into)
	return err
}

// Load is like [Decode] but also returns the positions of all values. If there is an error, Load returns the positions found so far.
func Load(name string, data []byte, into any) (*Positions, error) {
	result, pos, err := read(name, data, into)
	if err == nil {
		reflect.ValueOf(into).Elem().Set(result)
	}
	return pos, err
}

// DecodePartial is like [Load], but if there are faults, it sets all settings that can be decoded, so that callers can check these settings
// and report further faults in the same run. An invalid setting keeps its previous value, so a check may report a fault that is only a
// consequence of an earlier one; use [Errors.Covers] to recognise such reports.
func DecodePartial(name string, data []byte, into any) (*Positions, error) {
	result, pos, err := read(name, data, into)
	reflect.ValueOf(into).Elem().Set(result)
	return pos, err
}

// read decodes data into a copy of the value that into points to, and returns the copy.
func read(name string, data []byte, into any) (reflect.Value, *Positions, error) {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("strictyaml: decode into %T, want a pointer", into))
	}
	root := planOf(target.Type().Elem())
	src := &source{name: name, at: map[string]place{}}
	pos := &Positions{file: name, at: src.at, included: make(map[string]*Positions)}
	result := reflect.New(target.Type().Elem()).Elem()
	result.Set(target.Elem())
	if doc := src.parse(data); doc != nil {
		(&decoder{src: src}).value(doc, root, result, "")
	}
	if len(src.faults) > 0 {
		return result, pos, src.faults.Sort()
	}
	return result, pos, nil
}

// decoder walks a YAML tree and a plan in parallel. It replaces pointers, lists and maps instead of modifying their contents, because
// defaults may be shared.
type decoder struct {
	src *source
}

func (d *decoder) fault(n *yaml.Node, path, hint, format string, args ...any) {
	d.src.fault(placeOf(n), path, hint, format, args...)
}

// mismatch reports a value of the wrong type.
func (d *decoder) mismatch(n *yaml.Node, pl *plan, path string) {
	hint := ""
	switch {
	case kindOf(n) == kindMissing:
		d.fault(n, path, forms[pl.form].empty, "value is missing, expected %s", pl.expected())
		return
	case kindOf(n) == kindNull:
		hint = "omit the key to use the default"
	case pl.form == formString || pl.form == formText:
		if kindOf(n) < kindString {
			hint = "quote it"
		}
	case pl.form == formDuration && (kindOf(n) == kindInteger || kindOf(n) == kindFloat):
		hint = "write the unit"
	case kindOf(n) == kindAmbiguous:
		hint = "write it without leading zeros or underscores"
	case pl.form == formBool && kindOf(n) == kindString:
		hint = boolHints[strings.ToLower(n.Value)]
	case kindOf(n) == kindString && plainKind(n.Value) != kindString:
		hint = "write it without quotes"
	case pl.form == formList && kindOf(n) == kindMapping:
		hint = "write - before each entry"
	case pl.form == formList:
		hint = "write [...] around it, or - before it"
	case pl.form == formStruct && kindOf(n) == kindList:
		hint = pl.memberHint()
	case (pl.form == formInt || pl.form == formUint) && (kindOf(n) == kindString || kindOf(n) == kindFloat):
		hint = "write only digits, such as 60"
	}
	d.fault(n, path, hint, "expected %s, found %s", pl.expected(), kindOf(n))
}

// memberHint lists the keys of a section, for files that contain a list instead.
func (pl *plan) memberHint() string {
	if names := pl.names(); len(names) > 0 && len(names) <= few {
		return "known keys: " + strings.Join(names, ", ")
	}
	return ""
}

// boolHints are hints for strings that stand for a boolean.
var boolHints = map[string]string{
	"yes": "write true", "y": "write true", "on": "write true",
	"no": "write false", "n": "write false", "off": "write false",
	"true": "write it without quotes", "false": "write it without quotes",
}

// value decodes n into v.
func (d *decoder) value(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	switch k := kindOf(n); {
	case k == kindBroken:
		return
	case (pl.form == formStruct || pl.form == formMap) && k != kindMapping, pl.form == formList && k != kindList:
		d.mismatch(n, pl, path)
		return
	}
	switch pl.form {
	case formStruct:
		d.structure(n, pl, v, path)
	case formMap:
		d.mapping(n, pl, v, path)
	case formList:
		d.list(n, pl, v, path)
	case formPointer:
		d.pointer(n, pl, v, path)
	case formSecret:
		d.secret(n, pl, v, path)
	case formAny:
		if x := d.any(n, path); x != nil {
			v.Set(reflect.ValueOf(x))
		} else {
			v.SetZero()
		}
	case formText:
		d.text(n, pl, v, path)
	case formString, formDuration, formBool:
		d.scalar(n, pl, v, path)
	case formInt, formUint, formFloat:
		d.number(n, pl, v, path)
	case formDecimal:
		d.exact(n, pl, v, path)
	}
}

func (d *decoder) structure(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	present := make(map[string]bool, len(n.Content)/2)
	for key, value := range entries(n) {
		here := fault.Key(path, key.Value)
		f := pl.field(key.Value)
		if f == nil {
			d.src.fault(placeOf(key), here, suggest(key.Value, pl.names()), "unknown key")
			continue
		}
		present[key.Value] = true
		d.value(value, f.plan, v.FieldByIndex(f.index), here)
	}
	for _, f := range pl.fields {
		if f.required && !present[f.name] {
			d.fault(n, fault.Key(path, f.name), "", "is required")
		}
	}
}

func (d *decoder) mapping(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	out := reflect.MakeMapWithSize(pl.typ, len(n.Content)/2)
	for name, value := range entries(n) {
		here := fault.Key(path, name.Value)
		key, elem := pl.key.zero(), pl.elem.zero()
		d.value(name, pl.key, key, here)
		d.value(value, pl.elem, elem, here)
		out.SetMapIndex(key, elem)
	}
	v.Set(out)
}

func (d *decoder) list(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	out := reflect.MakeSlice(pl.typ, 0, len(n.Content))
	for i, item := range n.Content {
		elem := pl.elem.zero()
		d.value(item, pl.elem, elem, fault.Index(path, i))
		out = reflect.Append(out, elem)
	}
	v.Set(out)
}

// pointer decodes into a newly allocated value, so that it does not modify a shared default.
func (d *decoder) pointer(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	elem := pl.elem.zero()
	if !v.IsNil() {
		elem.Set(v.Elem())
	}
	d.value(n, pl.elem, elem, path)
	v.Set(elem.Addr())
}

// any decodes a value for a field of type any, such as the parameters of a policy.
func (d *decoder) any(n *yaml.Node, path string) any {
	switch kindOf(n) {
	case kindBool:
		return isTrue(n.Value)
	case kindString:
		return n.Value
	case kindInteger:
		i, err := strconv.ParseInt(n.Value, 0, 64)
		if err != nil {
			d.fault(n, path, "", "integer exceeds 64 bits")
		}
		return i
	case kindFloat:
		return d.float(n, path, 64)
	case kindAmbiguous:
		d.fault(n, path, "quote it, or write it without leading zeros or underscores", "expected a value, found %s", kindOf(n))
	case kindList:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = d.any(item, fault.Index(path, i))
		}
		return list
	case kindMapping:
		m := make(map[string]any, len(n.Content)/2)
		for key, value := range entries(n) {
			m[key.Value] = d.any(value, fault.Key(path, key.Value))
		}
		return m
	case kindMissing:
		d.fault(n, path, "write null for a null value", "value is missing")
	case kindBroken, kindNull:
	}
	return nil
}

// text decodes a type that implements encoding.TextUnmarshaler.
func (d *decoder) text(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	switch {
	case kindOf(n) != kindString:
		d.mismatch(n, pl, path)
	case d.listed(n, pl, path):
		text := n.Value
		if _, isNetwork := reflect.TypeAssert[interface{ Masked() netip.Prefix }](v.Addr()); isNetwork {
			text = unmapped(text)
		}
		// The planner has checked the method set of the pointer.
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			d.refused(n, v, path, err)
		}
	}
}

// mappedBits is the length of the prefix of IPv4-mapped addresses, ::ffff:0:0/96 (RFC 4291, section 2.5.5.2).
const mappedBits = 96

// unmapped returns the IPv4 form of an IPv4-mapped network, and any other text unchanged. Addresses are compared in their IPv4 form, which
// the IPv4-mapped form of a network does not contain.
func unmapped(text string) string {
	p, err := netip.ParsePrefix(text)
	if err != nil || !p.Addr().Is4In6() || p.Bits() < mappedBits {
		return text
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits).String()
}

// refused reports a text that UnmarshalText rejected. For types of the standard library, it replaces the error with a message about the
// expected format.
func (d *decoder) refused(n *yaml.Node, v reflect.Value, path string, err error) {
	hint := ""
	switch v.Addr().Interface().(type) {
	case *time.Time:
		err = errors.New("must be a time with a time zone")
		hint = "write 2027-01-31T18:00:00Z, or 2027-01-31T18:00:00+01:00"
	case *netip.Addr:
		err = errors.New("must be an IP address such as 10.0.0.5")
	case *netip.AddrPort:
		err = errors.New("must be an IP address and a port, such as 10.0.0.5:8080")
	case *netip.Prefix:
		err = errors.New("must be an IP network such as 10.0.0.0/8")
		if addr, aerr := netip.ParseAddr(n.Value); aerr == nil {
			hint = fmt.Sprintf("write %s/%d for one address", addr, addr.BitLen())
		}
	}
	d.fault(n, path, hint, "%v", err)
}

func (d *decoder) scalar(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	switch {
	case pl.form == formBool && kindOf(n) == kindBool:
		v.SetBool(isTrue(n.Value))
	case pl.form == formString && kindOf(n) == kindString:
		if d.listed(n, pl, path) {
			v.SetString(n.Value)
		}
	case pl.form == formDuration && kindOf(n) == kindString:
		v.SetInt(int64(d.duration(n, path)))
	default:
		d.mismatch(n, pl, path)
	}
}

// repeatable matches values that a message may repeat. It does not match API keys, because these are longer.
var repeatable = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,23}$`)

// listed reports whether the text is one of the values that the type lists. It returns true for a type that lists no values.
func (d *decoder) listed(n *yaml.Node, pl *plan, path string) bool {
	if pl.values == nil || slices.Contains(pl.values, n.Value) {
		return true
	}
	message := "unknown value"
	if repeatable.MatchString(n.Value) {
		message = fmt.Sprintf("unknown value %q", n.Value)
	}
	d.fault(n, path, suggest(n.Value, pl.values), "%s", message)
	return false
}

func (d *decoder) duration(n *yaml.Node, path string) time.Duration {
	t, err := time.ParseDuration(n.Value)
	switch {
	case strings.HasPrefix(n.Value, "-"), strings.HasPrefix(n.Value, "+"):
		d.fault(n, path, "", "duration must not have a sign")
	case err != nil && strings.HasSuffix(n.Value, "d"):
		d.fault(n, path, "write days in hours: 24h", `expected a duration such as "1m30s"`)
	case err != nil:
		d.fault(n, path, "valid units are h, m, s, ms, us and ns", `expected a duration such as "1m30s"`)
	}
	return t
}

func (d *decoder) number(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	bits := pl.typ.Bits()
	switch {
	case pl.form == formFloat && (kindOf(n) == kindInteger || kindOf(n) == kindFloat):
		v.SetFloat(d.float(n, path, bits))
	case pl.form == formInt && kindOf(n) == kindInteger:
		i, err := strconv.ParseInt(n.Value, 0, bits)
		if err != nil {
			d.fault(n, path, "", "is out of range, expected %d to %d", int64(-1)<<(bits-1), int64(1)<<(bits-1)-1)
		}
		v.SetInt(i)
	case pl.form == formUint && kindOf(n) == kindInteger:
		u, err := strconv.ParseUint(strings.TrimPrefix(n.Value, "+"), 0, bits)
		if err != nil {
			d.fault(n, path, "", "is out of range, expected 0 to %d", ^uint64(0)>>(64-bits))
		}
		v.SetUint(u)
	default:
		d.mismatch(n, pl, path)
	}
}

// exact decodes a type that implements NumberUnmarshaler.
func (d *decoder) exact(n *yaml.Node, pl *plan, v reflect.Value, path string) {
	if kindOf(n) != kindInteger && kindOf(n) != kindFloat {
		d.mismatch(n, pl, path)
		return
	}
	if text, ok := d.decimal(n, path); ok {
		if err := v.Addr().Interface().(NumberUnmarshaler).UnmarshalNumber(text); err != nil {
			d.fault(n, path, "", "%v", err)
		}
	}
}

// float returns the value of a number.
func (d *decoder) float(n *yaml.Node, path string, bits int) float64 {
	text, ok := d.decimal(n, path)
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(text, bits)
	if err != nil {
		d.fault(n, path, "", "is out of range for a number of %d bits", bits)
	}
	return f
}

// decimal returns the text of a node that is a finite decimal number. For any other node, it reports a fault and returns false.
func (d *decoder) decimal(n *yaml.Node, path string) (string, bool) {
	switch {
	case strings.ContainsAny(n.Value, "nN"): // only .inf and .nan contain an n
		d.fault(n, path, "", "must be a finite number")
		return "", false
	case kindOf(n) != kindInteger || len(n.Value) < 2 || n.Value[0] != '0':
		return n.Value, true
	}
	u, err := strconv.ParseUint(n.Value, 0, 64)
	if err != nil {
		d.fault(n, path, "", "integer exceeds 64 bits")
	}
	return strconv.FormatUint(u, 10), err == nil
}
