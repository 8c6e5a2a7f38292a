package v1

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
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

// object begins the object a writer is for, or a member that is one.
func (w *objectWriter) object(members func(w *objectWriter)) {
	w.buf = append(w.buf, '{')
	members(w)
	w.buf = append(w.buf, '}')
}

// name begins a member. Names are ours, so they are written as they are.
func (w *objectWriter) name(name string) *objectWriter {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(appendPlain(w.buf, name), ':')
	return w
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

func (w *objectWriter) flag(name string, b bool) {
	w.name(name)
	w.buf = strconv.AppendBool(w.buf, b)
}

func (w *objectWriter) value(name string, v any) {
	w.name(name)
	w.keep(appendJSON(w.buf, v))
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
		if unsigned(string(v)) {
			return append(buf, v...), nil
		}
	case []any:
		if v != nil {
			return appendArray(buf, v)
		}
	case map[string]any:
		if v != nil {
			return appendObject(buf, v)
		}
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

func appendObject(buf []byte, members map[string]any) ([]byte, error) {
	var room [32]string // as many as an endpoint has
	names := room[:0]
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	buf = append(buf, '{')
	for i, name := range names {
		if i > 0 {
			buf = append(buf, ',')
		}
		var err error
		if buf, err = appendText(buf, name); err != nil {
			return nil, err
		}
		buf = append(buf, ':')
		if buf, err = appendJSON(buf, members[name]); err != nil {
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

// plain reports whether a string is written as it is.
func plain(s string) bool {
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
