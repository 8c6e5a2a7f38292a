package v1

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/translate"
)

// selfWriter is a value of answers that writes itself: what is written once need
// not be built first.
type selfWriter interface {
	appendTo(buf []byte) ([]byte, error)
}

// objectWriter writes JSON objects member by member, in the order they come in,
// which is to be that of their names: appendJSON writes maps so.
type objectWriter struct {
	buf []byte
	err error // the first
}

// begin begins the object a writer is for, which end ends.
func (w *objectWriter) begin() { w.buf = append(w.buf, '{') }

func (w *objectWriter) end() { w.buf = append(w.buf, '}') }

// name begins a member. Names are ours, so they are written as they are.
func (w *objectWriter) name(name string) {
	if w.buf[len(w.buf)-1] == '{' {
		w.buf = append(w.buf, '"')
	} else {
		w.buf = append(w.buf, ',', '"')
	}
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

// object begins a member that is an object, which end ends.
func (w *objectWriter) object(name string) {
	w.name(name)
	w.begin()
}

func (w *objectWriter) text(name, s string) {
	w.name(name)
	w.keep(appendText(w.buf, s))
}

// texts writes a list, never null.
func (w *objectWriter) texts(name string, list []string) {
	w.name(name)
	w.buf = append(w.buf, '[')
	for i, s := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.keep(appendText(w.buf, s))
	}
	w.buf = append(w.buf, ']')
}

func (w *objectWriter) whole(name string, n int64) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

func (w *objectWriter) number(name string, n json.Number) {
	w.name(name)
	w.keep(appendNumber(w.buf, n))
}

func (w *objectWriter) flag(name string, b bool) {
	w.name(name)
	w.buf = strconv.AppendBool(w.buf, b)
}

func (w *objectWriter) value(name string, v any) {
	w.name(name)
	w.keep(appendJSON(w.buf, v))
}

// members writes the object v but for the members that are hidden, an empty one if v is
// none.
func (w *objectWriter) members(name string, v any, hidden []string) {
	w.name(name)
	w.keep(appendMembers(w.buf, v, hidden))
}

func (w *objectWriter) keep(buf []byte, err error) {
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return
	}
	w.buf = buf
}

// appendJSON writes what answers are made of, to the byte as encoding/json does
// with HTML left alone. Most of a list's time went into finding out by
// reflection what its values are.
func appendJSON(buf []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(buf, "null"...), nil
	case bool:
		return strconv.AppendBool(buf, v), nil
	case string:
		return appendText(buf, v)
	case int:
		return strconv.AppendInt(buf, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(buf, v, 10), nil
	case json.Number:
		return appendNumber(buf, v)
	case []any:
		if v != nil {
			return appendArray(buf, v)
		}
	case map[string]any:
		if v != nil {
			return appendMembers(buf, v, nil)
		}
	case translate.Record:
		return appendMembers(buf, v, nil)
	case selfWriter:
		return v.appendTo(buf)
	}
	return appendOther(buf, v)
}

// roomForList bounds the room that is made for a list by its first element.
const roomForList = 1 << 20

func appendArray(buf []byte, items []any) ([]byte, error) {
	buf = append(buf, '[')
	begin := len(buf)
	for i, item := range items {
		if i > 0 {
			buf = append(buf, ',')
		}
		if i == 1 { // the others are much alike
			buf = slices.Grow(buf, min((len(buf)-begin)*len(items), roomForList))
		}
		var err error
		if buf, err = appendJSON(buf, item); err != nil {
			return nil, err
		}
	}
	return append(buf, ']'), nil
}

func appendText(buf []byte, s string) ([]byte, error) {
	if !plain(s) {
		return appendOther(buf, s)
	}
	return appendPlain(buf, s), nil
}

func appendNumber(buf []byte, n json.Number) ([]byte, error) {
	if !unsigned(string(n)) {
		return appendOther(buf, n)
	}
	return append(buf, n...), nil
}

// appendMembers writes an object but for the members that are hidden.
func appendMembers(buf []byte, object any, hidden []string) ([]byte, error) {
	var room [32]string // as many as an endpoint has
	names := room[:0]
	switch object := object.(type) {
	case map[string]any:
		for name := range object {
			names = append(names, name)
		}
	case translate.Record:
		names = object.Names()
	}
	slices.Sort(names)
	buf = append(buf, '{')
	first := true
	for _, name := range names {
		if slices.Contains(hidden, name) {
			continue
		}
		if !first {
			buf = append(buf, ',')
		}
		first = false
		var err error
		if buf, err = appendText(buf, name); err != nil {
			return nil, err
		}
		buf = append(buf, ':')
		if buf, err = appendJSON(buf, translate.At(object, name)); err != nil {
			return nil, err
		}
	}
	return append(buf, '}'), nil
}

// appendOther leaves to encoding/json what is rare.
func appendOther(buf []byte, v any) ([]byte, error) {
	out := bytes.NewBuffer(buf)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Eight bytes at a time: a byte in each, and the highest bit of each.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// plain reports whether a string is written as it is.
func plain(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		// The highest bit of a byte is set if that is below 0x20 or a quote, which are
		// those that differ from 0x02 by less than 0x21, a backslash, or above 0x7e. Carries
		// come from such bytes only.
		w := binary.LittleEndian.Uint64([]byte(s[:8]))
		if ((w^0x02*eachByte-0x21*eachByte)|(w^'\\'*eachByte-eachByte)|(w+eachByte)|w)&highBits != 0 {
			return false
		}
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func appendPlain(buf []byte, s string) []byte {
	buf = append(buf, '"')
	buf = append(buf, s...)
	return append(buf, '"')
}

// unsigned reports a JSON number without exponent and without doubt: no sign, no
// leading zero.
func unsigned(s string) bool {
	digits, dots := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && i > 0 && i < len(s)-1:
			dots++
		default:
			return false
		}
	}
	leading := len(s) > 1 && s[0] == '0' && s[1] != '.'
	return digits > 0 && dots < 2 && !leading
}
