package translate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
)

// jsonAppender is a response value that encodes itself, without an intermediate map.
type jsonAppender interface {
	AppendTo(buf []byte) ([]byte, error)
}

// AppendJSON appends the JSON encoding of v, byte for byte as encoding/json produces it without HTML escaping. It does not use reflection,
// which took most of the time of long lists.
func AppendJSON(buf []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(buf, "null"...), nil
	case bool:
		return strconv.AppendBool(buf, v), nil
	case string:
		return AppendText(buf, v)
	case int:
		return strconv.AppendInt(buf, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(buf, v, 10), nil
	case json.Number:
		return AppendNumber(buf, v)
	case []any:
		if v != nil {
			return appendArray(buf, v)
		}
	case map[string]any:
		if v != nil {
			return AppendMembers(buf, v, nil, nil)
		}
	case Record:
		return AppendMembers(buf, v, nil, nil)
	case jsonAppender:
		return v.AppendTo(buf)
	}
	return appendOther(buf, v)
}

// maxListGrowth limits the memory reserved for a list by the size of its first element, in bytes.
const maxListGrowth = 1 << 20

func appendArray(buf []byte, items []any) ([]byte, error) {
	buf = append(buf, '[')
	begin := len(buf)
	for i, item := range items {
		if i > 0 {
			buf = append(buf, ',')
		}
		if i == 1 { // the remaining elements have about the same size
			buf = slices.Grow(buf, min((len(buf)-begin)*len(items), maxListGrowth))
		}
		var err error
		if buf, err = AppendJSON(buf, item); err != nil {
			return nil, err
		}
	}
	return append(buf, ']'), nil
}

// AppendText appends the JSON encoding of a string.
func AppendText[T string | []byte](buf []byte, s T) ([]byte, error) {
	if !plain(s) {
		return appendOther(buf, string(s))
	}
	return appendPlain(buf, s), nil
}

// AppendNumber appends the JSON encoding of a number.
func AppendNumber(buf []byte, n json.Number) ([]byte, error) {
	if !unsigned(string(n)) {
		return appendOther(buf, n)
	}
	return append(buf, n...), nil
}

// AppendMembers appends the JSON encoding of an object without the hidden members. If room is not nil, *room is a reusable buffer for the
// member names of a Record. AppendMembers may replace *room with a larger buffer.
func AppendMembers(buf []byte, object any, hidden []string, room *[]string) ([]byte, error) {
	var few [32]string // enough for an endpoint
	names := few[:0]
	record, _ := object.(Record)
	switch members, _ := object.(map[string]any); {
	case record == nil:
		for name := range members {
			names = append(names, name)
		}
	case room == nil:
		names = record.AppendNames(nil)
	default:
		*room = record.AppendNames((*room)[:0])
		names = *room
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
		if buf, err = AppendText(buf, name); err != nil {
			return nil, err
		}
		if buf, err = appendMember(append(buf, ':'), object, record, name); err != nil {
			return nil, err
		}
	}
	return append(buf, '}'), nil
}

// appendMember appends the value of one member. It reads strings of a Record directly, because boxing them would
// allocate.
func appendMember(buf []byte, object any, record Record, name string) ([]byte, error) {
	if record != nil {
		if s := record.Text(name); s != "" {
			return AppendText(buf, s)
		}
	}
	return AppendJSON(buf, At(object, name))
}

// appendOther encodes rare types with encoding/json.
func appendOther(buf []byte, v any) ([]byte, error) {
	out := bytes.NewBuffer(buf)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Masks for eight bytes in one word: 0x01 in each byte, and the highest bit of each byte.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// plain reports whether s needs no escaping.
func plain[T string | []byte](s T) bool {
	for ; len(s) >= 8; s = s[8:] {
		// This sets the highest bit of each byte that is below 0x20, a quote, a backslash, or above 0x7e. The first two
		// are the bytes that differ from 0x02 by less than 0x21. Only such bytes produce carries.
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

func appendPlain[T string | []byte](buf []byte, s T) []byte {
	buf = append(buf, '"')
	buf = append(buf, s...)
	return append(buf, '"')
}

// unsigned reports whether s is a JSON number without sign, exponent or leading zero.
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
